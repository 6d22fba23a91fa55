"""Expected loss against CPU time: what a tenth of a second buys, and what more does.

The tight channel and planar Laplace, each after the Bayesian remap, cost one linear solve or one
integral; the optimum takes longer, and shows its loss and the bound on everybody's on the way.
All losses are compared with the best bound that was found.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from numpy.typing import ArrayLike

from whereish.audit.utility import quality_loss
from whereish.errors import InvalidInput, NotPrivate
from whereish.mechanisms.channels.channel import Channel
from whereish.mechanisms.channels.exponential import exponential_channel
from whereish.mechanisms.channels.inputs import PlacesLike
from whereish.mechanisms.channels.laplace import laplace_channel
from whereish.mechanisms.channels.optimal import optimal_channel
from whereish.mechanisms.channels.remap import bayesian_remap
from whereish.mechanisms.channels.tight import tight_channel
from whereish.results import JsonResult
from whereish.solvers.optimal.programme import SolveProgress, relative_gap
from whereish.units import Epsilon

__all__ = ["Moment", "loss_over_time"]

_STEPS = (0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
"""Gaps at whose passing the optimum's progress is noted."""


@dataclass(frozen=True)
class Moment(JsonResult):
    """What a channel loses after so much CPU time.

    Attributes
    ----------
    loss : float
        Expected loss in metres, of the certified channel or, on the way, of the best so far.
    gap : float
        How far the loss may be above the optimum, by the best bound found in the end.
    known_gap : float or None
        By the bound that was known at that time; None where the method has none of its own.
    """

    mechanism: str
    cpu_s: float
    loss: float
    gap: float
    known_gap: float | None


def loss_over_time(
    sites: PlacesLike,
    prior: ArrayLike | None,
    epsilon: Epsilon | str,
    *,
    gap: float = 1e-3,
    time_limit: float | None = None,
) -> list[Moment]:
    """Losses of the simple channels after the Bayesian remap, and of the optimum as it improves.

    Simple channels that these sites do not allow are left out.

    Examples
    --------
    >>> from whereish.interfaces.anytime import loss_over_time
    >>> found = loss_over_time([[0, 0], [100, 0], [200, 0]], None, "ln(3)/100 m")
    >>> [moment.mechanism for moment in found][-1], found[-1].gap <= 1e-3
    ('optimal', True)
    """
    optimal_channel([[0.0, 0.0], [1000.0, 0.0]], None, "1/km")  # loads what is compiled
    found = []
    rivals: dict[str, Callable[..., Channel]] = {
        "exponential + remap": exponential_channel,
        "tight + remap": tight_channel,
        "planar Laplace + remap": laplace_channel,
    }
    for name, build in rivals.items():
        start = time.process_time()
        try:
            channel = bayesian_remap(build(sites, epsilon), prior)
        except (InvalidInput, NotPrivate):
            continue
        spent = time.process_time() - start
        found.append(Moment(name, spent, quality_loss(channel, prior), 0.0, None))
    found += _optimum(sites, prior, epsilon, gap, time_limit)
    best = found[-1]
    lower = best.loss * (1.0 - (best.known_gap or 0.0))
    return [replace(moment, gap=relative_gap(moment.loss, lower)) for moment in found]


def _optimum(
    sites: PlacesLike,
    prior: ArrayLike | None,
    epsilon: Epsilon | str,
    gap: float,
    time_limit: float | None,
) -> list[Moment]:
    found: list[Moment] = []
    start = time.process_time()

    def note(at: SolveProgress) -> None:
        passed = [step for step in _STEPS if at.gap <= step]
        before = [step for step in _STEPS if found and (found[-1].known_gap or 0.0) <= step]
        if not found or len(passed) > len(before):
            spent = time.process_time() - start
            found.append(Moment(f"optimal, {at.stage}", spent, at.upper, 0.0, at.gap))

    channel = optimal_channel(sites, prior, epsilon, gap=gap, time_limit=time_limit, progress=note)
    spent = time.process_time() - start
    return [*found, Moment("optimal", spent, channel.loss, 0.0, channel.gap)]
