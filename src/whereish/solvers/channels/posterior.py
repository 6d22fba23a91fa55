"""Where to move a report: minimisers of the posterior expected loss.

For weights w_x = prior_x K_xz of one report, the expected Euclidean loss
f(c) = sum_x w_x |x - c| is convex.  Over the plane its minimiser is the geometric
median; over a finite set of candidates it is found exactly by cutting planes: every
evaluation at c gives f(c') >= f(c) + g . (c' - c) for all c', which strikes off the
candidates whose bound is not below the best value.  The next evaluation is at the
candidate closest to the centroid of the others, so that it strikes off about half of
them; starting from the minimiser of the report before, six or seven suffice in place of
one per candidate.
"""

from __future__ import annotations

import numpy as np

from whereish.arrays import FloatArray, IntArray
from whereish.compiled import kernel

__all__ = ["euclidean_argmin", "geometric_medians"]


@kernel
def euclidean_argmin(weights: FloatArray, places: FloatArray, candidates: FloatArray) -> IntArray:
    """For each row of `weights`, (m, n), the candidate of least expected distance."""
    columns, n = weights.shape
    count = candidates.shape[0]
    out = np.empty(columns, np.int64)
    bound = np.empty(count)
    left = np.empty(count, np.int64)  # candidates that may still be better
    current = 0
    for z in range(columns):
        open_count = count
        for c in range(count):
            left[c], bound[c] = c, -np.inf
        best, best_at = np.inf, current
        while True:
            value, slope_x, slope_y = 0.0, 0.0, 0.0
            here_x, here_y = candidates[current, 0], candidates[current, 1]
            for x in range(n):
                dx, dy = here_x - places[x, 0], here_y - places[x, 1]
                square = dx * dx + dy * dy
                length = np.sqrt(square)
                value += weights[z, x] * length
                pull = weights[z, x] / length if square > 0.0 else 0.0
                slope_x += pull * dx
                slope_y += pull * dy
            if value < best:
                best, best_at = value, current
            # The planes are exact up to rounding; ties within it are ties.
            limit = best * (1.0 - 1e-14)
            kept, sum_x, sum_y = 0, 0.0, 0.0
            for k in range(open_count):
                c = left[k]
                to_x, to_y = candidates[c, 0], candidates[c, 1]
                plane = value + slope_x * (to_x - here_x) + slope_y * (to_y - here_y)
                bound[c] = max(bound[c], plane)
                if bound[c] < limit and c != current:
                    left[kept] = c
                    kept += 1
                    sum_x += to_x
                    sum_y += to_y
            open_count = kept
            if open_count == 0:
                break
            nearest = np.inf
            for k in range(open_count):
                c = left[k]
                off_x, off_y = candidates[c, 0] - sum_x / kept, candidates[c, 1] - sum_y / kept
                if off_x * off_x + off_y * off_y < nearest:
                    nearest, current = off_x * off_x + off_y * off_y, c
        out[z] = best_at
        current = best_at
    return out


@kernel
def geometric_medians(weights: FloatArray, places: FloatArray, tolerance: float) -> FloatArray:
    """For each row of `weights`, (m, n), the point of least expected distance.

    Weiszfeld's iteration with the step of Vardi and Zhang (2000) where it meets one of
    the places; ends when a step is shorter than `tolerance`.
    """
    columns, n = weights.shape
    out = np.empty((columns, 2))
    for z in range(columns):
        total, at_x, at_y = 0.0, 0.0, 0.0
        for x in range(n):
            total += weights[z, x]
            at_x += weights[z, x] * places[x, 0]
            at_y += weights[z, x] * places[x, 1]
        if total > 0.0:
            at_x, at_y = at_x / total, at_y / total
            for _ in range(1000):
                inverse, pull_x, pull_y, resting = 0.0, 0.0, 0.0, 0.0
                for x in range(n):
                    w = weights[z, x]
                    if w > 0.0:
                        dx, dy = places[x, 0] - at_x, places[x, 1] - at_y
                        length = np.sqrt(dx * dx + dy * dy)
                        if length > 1e-3 * tolerance:
                            inverse += w / length
                            pull_x += w * dx / length
                            pull_y += w * dy / length
                        else:
                            resting += w
                pull = np.sqrt(pull_x * pull_x + pull_y * pull_y)
                if inverse == 0.0 or pull <= resting:
                    break  # the place itself is the median
                share = (1.0 - resting / pull) / inverse
                at_x += share * pull_x
                at_y += share * pull_y
                if share * pull < tolerance:
                    break
        out[z, 0], out[z, 1] = at_x, at_y
    return out
