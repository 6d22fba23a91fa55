"""The best channel for one consumer, or for several at once, as a linear programme.

A consumer has a prior p and gains g(w, x) from taking w for the secret x.  A channel whose report
names a guess for each of several consumers gives them together

    sum_x sum_z K_xz sum_c p_c(x) g_c(w_c(z), x),

and every channel with its consumers' best remaps is one of these, so the maximum over channels
that keep d is a linear programme with a column for each tuple of guesses.  Where the maximum for
two consumers is less than the sum of their own maxima, no channel is best for both.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from whereish.arrays import FloatArray
from whereish.errors import SolverError

__all__ = ["Consumer", "best_utility"]

Consumer: TypeAlias = tuple[FloatArray, FloatArray]
"""A prior over secrets, and gains with a row for each guess and a column for each secret."""


def best_utility(distances: FloatArray, consumers: Sequence[Consumer]) -> tuple[float, FloatArray]:
    """The most that one channel that keeps `distances` gives all consumers together; its matrix."""
    n = len(distances)
    labels = list(itertools.product(*(range(len(gain)) for _, gain in consumers)))
    columns = len(labels)
    worth = np.zeros((n, columns))
    for z, guesses in enumerate(labels):
        for (prior, gain), guess in zip(consumers, guesses, strict=True):
            worth[:, z] += prior * gain[guess]
    pairs = [p for p in itertools.permutations(range(n), 2) if math.isfinite(distances[p])]
    rows = np.arange(len(pairs) * columns)
    first = np.array([x * columns + z for x, _ in pairs for z in range(columns)], np.int64)
    second = np.array([y * columns + z for _, y in pairs for z in range(columns)], np.int64)
    factors = np.repeat([math.exp(distances[p]) for p in pairs], columns)
    private: Any = coo_array(
        (np.append(np.ones(len(rows)), -factors), (np.tile(rows, 2), np.append(first, second))),
        (len(rows), n * columns),
    ).tocsr()
    ones: Any = coo_array(
        (np.ones(n * columns), (np.repeat(np.arange(n), columns), np.arange(n * columns))),
        (n, n * columns),
    ).tocsr()
    found: Any = linprog(
        -worth.ravel(),
        A_ub=private if pairs else None,
        b_ub=np.zeros(len(rows)) if pairs else None,
        A_eq=ones,
        b_eq=np.ones(n),
        method="highs",
    )
    if found.status != 0:
        raise SolverError(f"the linear programme of the consumers failed: {found.message}")
    return -float(found.fun), np.asarray(found.x).reshape(n, columns)
