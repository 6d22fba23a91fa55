"""Tests of a sampler's law against exact probabilities."""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from whereish.solvers.cells.mass import grid_masses


def chi_square(counts: np.ndarray, probabilities: np.ndarray, least: float = 20.0) -> float:
    """p-value of `counts` under `probabilities`; rare bins and the rest form one bin.

    `counts` has one entry more than `probabilities`: all that fell outside the bins.
    """
    n = counts.sum()
    expected = probabilities * n
    frequent = expected >= least
    observed = np.append(counts[:-1][frequent], n - counts[:-1][frequent].sum())
    wanted = np.append(expected[frequent], n - expected[frequent].sum())
    if wanted[-1] < least:
        observed[-2], wanted[-2] = observed[-2:].sum(), wanted[-2:].sum()
        observed, wanted = observed[:-1], wanted[:-1]
    assert len(observed) > 10, "too few bins for a test of the law"
    return float(chi2.sf(((observed - wanted) ** 2 / wanted).sum(), len(observed) - 1))


def lattice_p_value(
    cells: np.ndarray,
    secret: np.ndarray,
    survival,
    *,
    step: float = 1.0,
    block: int = 1,
    reach: int,
) -> float:
    """p-value of reported `cells` of one `secret` under circular noise of this survival.

    Bins are blocks of `block` x `block` lattice cells, `reach` blocks in each direction
    of the secret's cell.
    """
    centre = np.floor(secret / step + 0.5).astype(np.int64)
    low = centre - block * reach - block // 2
    bins = 2 * reach + 1
    edges = (low - 0.5)[:, None] + block * np.arange(bins + 1)
    masses = grid_masses(survival, edges[0] * step - secret[0], edges[1] * step - secret[1])
    index = (cells - low) // block
    inside = ((index >= 0) & (index < bins)).all(axis=1)
    flat = np.where(inside, index[:, 0] * bins + index[:, 1], bins * bins)
    counts = np.bincount(flat, minlength=bins * bins + 1).astype(float)
    return chi_square(counts, masses.ravel())
