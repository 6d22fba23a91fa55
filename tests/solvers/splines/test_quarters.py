"""eps on quarters of squares, as compiled loops take it."""

from __future__ import annotations

import numpy as np

from whereish.solvers.splines.levels import quarter_levels


def test_levels_of_quarters_are_those_of_the_square():
    """A bilinear eps has its values at corners and middles as control points, on quarters too."""
    rng = np.random.default_rng(3)
    a, b, c, d = rng.uniform(0.1, 2.0, 4)

    def eps(t: float, u: float) -> float:
        return float((1 - t) * ((1 - u) * a + u * b) + t * ((1 - u) * c + u * d))

    def inverse(down: float, across: float, side: float) -> np.ndarray:
        ends = (0.0, side / 2, side)
        return np.array([1 / eps(down + r, across + s) ** 2 for r in ends for s in ends])

    square = inverse(0.0, 0.0, 1.0).astype(np.float32)
    out = np.empty(9, np.float32)
    for which in range(4):
        quarter_levels(square, which, out)
        np.testing.assert_allclose(out, inverse(which // 2 / 2, which % 2 / 2, 0.5), rtol=1e-6)
    quarter_levels(np.zeros(9, np.float32), 1, out)
    assert not out.any()
