"""What was built for a map, in words: which law, why, what it costs, and what would help."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from whereish.arrays import FloatArray
from whereish.mechanisms.base import Remap
from whereish.mechanisms.maps.entries import UnderMap
from whereish.solvers.eikonal.cells import BuiltLaw

__all__ = ["account"]

_LAWS = {
    "eikonal": "the eikonal law (solved weights, prices lowered where they must be)",
    "exponential": "the exponential mechanism at half the map: no other certified law has a"
    " smaller squared error here",
    "constant": "the smallest level everywhere: no other certified law has a smaller squared"
    " error here",
    "landmarks": "the law of landmarks (the best channel of some hundred places under the prior,"
    " carried to the whole map and certified there; the map is narrow, so that its few reports say"
    " more than those of the eikonal law)",
}
_ROUGH = 0.9
"""Mean share of the asked map in use below which a smoother map is worth a thought: a tenth of
the map is a fifth of the squared error."""

_HARDLY = 0.7
"""Of the exponential mechanism's squared error: drawn reports above that gain little."""


class BuiltMechanism(UnderMap, Protocol):
    """What an account is given of."""

    @property
    def built(self) -> BuiltLaw: ...
    @property
    def prior(self) -> FloatArray | None: ...
    @property
    def lowered(self) -> FloatArray: ...
    def mse(self, prior: FloatArray | None = None, *, remap: Remap | None = None) -> float: ...
    def posterior_mean(self, prior: FloatArray | None = None) -> Remap: ...


def account(mechanism: BuiltMechanism) -> str:
    """A few sentences; figures are of the public map and prior."""
    found = mechanism.built.comparison
    lines = []
    if found is not None:
        chosen = getattr(found, found.chosen)
        lines.append(
            f"Chosen: {_LAWS[found.chosen]}. Its squared error is about"
            f" {_ratio(chosen, found.exponential)} of the exponential mechanism's at half the map"
            f" and {_ratio(chosen, found.constant)} of that of the smallest level everywhere."
        )
        if found.unsettled is not None:
            lines.append(
                "The eikonal law was not searched for to the end: before its slopes between cells"
                f" are lowered, its moved reports have {found.unsettled:.2f} times the error of"
                " these."
            )
        if found.chosen == "eikonal" and chosen > _HARDLY * found.exponential:
            lines.append(
                "On so narrow a map its reports as they are drawn are hardly worth it: they pile up"
                " along the edge. Use `recommended`, which moves them"
                + (
                    "; build(..., prior=...) also tries the law of landmarks, whose reports need"
                    " not be moved."
                    if found.landmarks is None
                    else ": the law of landmarks has more error still."
                )
            )
    lowered = mechanism.lowered
    lines.append(
        f"The map in use is {lowered.mean():.3f} of the asked on average and"
        f" {lowered.min():.3f} where it is lowered most."
    )
    if mechanism.built.gradient_factor is None and lowered.mean() < _ROUGH:
        radius = 0.5 / float(np.median(mechanism.map.values))
        lines.append(
            f"More than a tenth is lost to steps between levels: a smoother map would keep more,"
            f" such as map.smoothed('{radius:.3g} m'), half of a median 1/epsilon; that asks for"
            " other levels next to a step, looser ones on its tight side."
        )
    if mechanism.prior is not None:
        plain = mechanism.mse(mechanism.prior)
        moved = mechanism.mse(mechanism.prior, remap=mechanism.posterior_mean(mechanism.prior))
        lines.append(
            f"Under the prior the root of the squared error is {plain**0.5:.4g} m, and"
            f" {moved**0.5:.4g} m once reports are moved to the posterior mean, as `recommended`"
            " does: at no cost in privacy, for one pass over all pairs of cells, with reports"
            " that are no longer centres or corners of cells."
        )
    return " ".join(lines)


def _ratio(one: float, other: float) -> str:
    return f"{one / other:.2f}" if other > 0 else "1"
