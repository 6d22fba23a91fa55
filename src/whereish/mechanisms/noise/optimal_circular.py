"""The circular noise of least expected loss that keeps a distinguishability function."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.mechanisms.noise.circular import CircularNoise
from whereish.privacy.distinguishability import Distinguishability
from whereish.solvers.radial.any_loss import optimal_radial_any
from whereish.solvers.radial.log_linear import LogLinear
from whereish.solvers.radial.loss import Loss
from whereish.solvers.radial.optimum import optimal_radial
from whereish.solvers.radial.tail import Tail, tight_radial
from whereish.space.plane import Plane
from whereish.units import Length

__all__ = ["OptimalCircular", "laplace_within"]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class OptimalCircular(CircularNoise):
    """Least expected loss over all noise that keeps l, is bounded by M and is rho-tight.

    Contract: keeps l(|x - x'|) in true metres, at the least expected loss up to `gap`.

    Parameters
    ----------
    keeps
        The distinguishability function l.
    loss
        What a report at distance r costs; the distance itself by default.  A loss that falls
        somewhere is given as :meth:`Loss.piecewise`.
    bound
        M, the largest density allowed, per square metre; none by default.
    tail
        rho, as limits of P(|v| > q) at distances q: ``{"5 km": 0.05}``; or a function of all
        radii, :class:`~whereish.solvers.radial.tail.Tail`, certified on all of them.
    resolution, plane
        As for :class:`~whereish.mechanisms.noise.circular.CircularNoise`.

    Notes
    -----
    `loss_value` is the expected loss and `lower_bound` a proven lower bound of that of
    every noise density that meets the same conditions, circular or not; `gap` is
    their relative difference.  Losses are of distances in metres of the plane.  For l = eps * d
    this is planar Laplace noise, whatever the loss (ElSalamouny and Gambs 2018, Theorem 9); for
    (D, eps)-location privacy, which they leave open, a staircase with steps of width D.  For a
    single-point region (:meth:`Distinguishability.unlimited`) it is the uniform disk of density M.

    Raises
    ------
    InvalidInput
        If no noise that integrates over the plane keeps l, `bound` and `tail`.
    NotPrivate
        If the solved radial fails its certificate.

    Examples
    --------
    >>> import whereish as wh
    >>> noise = wh.OptimalCircular(wh.Distinguishability.linear("0.01/m"))
    >>> round(float(noise.loss_value), 1), bool(noise.gap < 0.001)
    (200.0, True)
    """

    loss: Loss
    loss_value: float
    lower_bound: float

    def __init__(
        self,
        keeps: Distinguishability,
        loss: Loss | Callable[[FloatArray], FloatArray] | None = None,
        *,
        bound: float | None = None,
        tail: Mapping[str | Length, float] | Tail | None = None,
        resolution: Length | str = "1 m",
        plane: Plane | None = None,
    ) -> None:
        wanted = Loss.power(1) if loss is None else loss
        if not isinstance(wanted, Loss):
            wanted = Loss.of(wanted)
        promise = keeps.dilated(1.0 if plane is None else plane.scale)
        most = math.inf if bound is None else float(bound)
        solver = optimal_radial if wanted.rising else optimal_radial_any
        if isinstance(tail, Tail):
            found = tight_radial(
                lambda limits: solver(promise, wanted, bound=most, tail=limits), tail, promise
            )
        else:
            limits = tuple(
                (Length.positive(q, name="tail distance").m, float(limit))
                for q, limit in (tail or {}).items()
            )
            found = solver(promise, wanted, bound=most, tail=limits)
        super().__init__(found.radial, keeps=keeps, resolution=resolution, plane=plane)
        object.__setattr__(self, "loss", wanted)
        object.__setattr__(self, "loss_value", found.loss)
        object.__setattr__(self, "lower_bound", found.lower_bound)

    @property
    def gap(self) -> float:
        """(loss - lower bound) / loss: how far from the optimum this can be at most."""
        return (self.loss_value - self.lower_bound) / self.loss_value


def laplace_within(
    keeps: Distinguishability,
    *,
    resolution: Length | str = "1 m",
    plane: Plane | None = None,
) -> CircularNoise:
    """Planar Laplace noise with the largest eps for which eps * d <= l(d) everywhere."""
    on_plane = keeps.dilated(1.0 if plane is None else plane.scale)
    decay = on_plane.decay * (1 - 2.0**-40)
    if not (math.isfinite(decay) and decay > 0):
        raise InvalidInput(f"no planar Laplace noise is the largest that keeps {keeps}")
    radial = LogLinear(np.array([0.0, math.inf]), np.zeros(1), np.zeros(1), decay)
    return CircularNoise(radial, keeps=keeps, resolution=resolution, plane=plane)
