"""After how many reports a place is known within 50 m: repeated reports, and an attacker.

Fresh noise averages out.  The attacker takes the geometric median of n reports of one place
(the likeliest place under planar Laplace noise), or a method of his own; n is the least of a
ladder for which nine of ten trials end within 50 m.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from whereish.arrays import FloatArray
from whereish.studies.field.samplers import Sampler

__all__ = ["WITHIN_M", "circle_centres", "geometric_median", "reports_needed", "trace_ends"]

WITHIN_M = 50.0
_SHARE = 0.9
_LADDER = (1, 2, 3, 4, 5, 7, 10, 14, 20, 28, 40, 57, 80, 113, 160, 226, 320, 452, 640, 905, 1280)
_WEISZFELD = 40

Guess = Callable[[FloatArray], FloatArray]
"""From (trials, n, 2) reports to (trials, 2) guesses."""


def geometric_median(reports: FloatArray) -> FloatArray:
    """The place of least summed distance to the reports of each trial, by Weiszfeld's steps."""
    guess = reports.mean(axis=1)
    for _ in range(_WEISZFELD):
        away = np.linalg.norm(reports - guess[:, None], axis=2)
        weights = 1 / np.maximum(away, 1e-9)
        guess = (weights[..., None] * reports).sum(axis=1) / weights.sum(axis=1)[:, None]
    return np.asarray(guess)


def reports_needed(
    sample: Sampler,
    random: np.random.Generator,
    *,
    trials: int,
    guess: Guess = geometric_median,
    most: int = _LADDER[-1],
) -> float:
    """The least n of the ladder that suffices; infinity where none up to `most` does."""
    for count in (n for n in _LADDER if n <= most):
        homes = random.uniform(-300, 300, (trials, 2))
        reports = sample(np.repeat(homes, count, axis=0)).reshape(trials, count, 2)
        away = np.linalg.norm(guess(reports) - homes, axis=1)
        if (away <= WITHIN_M).mean() >= _SHARE:
            return float(count)
    return math.inf


def trace_ends(zone_m: float, gap_m: float, random: np.random.Generator) -> Sampler:
    """Where a track first shows outside a zone around home: the next fix beyond its border."""

    def sample(homes: FloatArray) -> FloatArray:
        radius = zone_m + gap_m * random.random(len(homes))
        angle = 2 * math.pi * random.random(len(homes))
        around = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
        return np.asarray(homes + around)

    return sample


def circle_centres(ends: FloatArray) -> FloatArray:
    """The centre of the circle through the ends of each trial, by least squares.

    |e - c|² = r² is linear in c and r² - |c|²; fewer than three ends leave it open.
    """
    if ends.shape[1] < 3:
        return np.asarray(ends.mean(axis=1))
    ones = np.ones((*ends.shape[:2], 1))
    system = np.concatenate([2 * ends, ones], axis=2)
    squares = (ends**2).sum(axis=2)
    solved = [np.linalg.lstsq(a, b, rcond=None)[0] for a, b in zip(system, squares, strict=True)]
    return np.asarray(solved)[:, :2]
