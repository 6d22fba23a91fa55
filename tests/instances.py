"""Places with peaked priors, made here, for tests and benchmarks of finite mechanisms."""

from __future__ import annotations

import numpy as np

CELL = (658.0, 712.0)  # metres
EPSILON = "1.07/km"


def peaked(columns: int, rows: int, *, keep: int | None = None, seed: int = 7):
    """(places in metres, prior): a few hot spots with heavy-tailed noise per cell."""
    rng = np.random.default_rng(seed)
    i, j = np.meshgrid(np.arange(columns), np.arange(rows), indexing="ij")
    places = np.c_[i.ravel() * CELL[0], j.ravel() * CELL[1]]
    extent = places.max(axis=0)
    density = np.zeros(len(places))
    for _ in range(4 + len(places) // 60):
        centre, spread = rng.uniform([0, 0], extent), rng.uniform(700, 1800)
        weight = rng.pareto(2.0) + 0.5
        square = ((places - centre) ** 2).sum(axis=1)
        density += weight / spread**2 * np.exp(-square / (2 * spread**2))
    density += 0.02 * density.max()
    density *= rng.gamma(0.9, 1 / 0.9, size=len(places)) + 0.01
    if keep is not None:
        chosen = np.sort(np.argsort(-density)[:keep])
        places, density = places[chosen], density[chosen]
    return places, density / density.sum()


def distances(places):
    return np.hypot(*np.moveaxis(places[:, None] - places[None], -1, 0))
