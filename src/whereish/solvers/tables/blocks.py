"""Laws in tables as blocks of 64 reports, for the slopes and errors of what lies between nodes.

A column's logarithms count by their differences alone (:mod:`~whereish.solvers.splines.blocks`), so
they are taken from the middle of their range: single precision then rounds half as much.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from whereish.arrays import FloatArray, IntArray
from whereish.solvers.geodesic.lanes import LANES
from whereish.solvers.geodesic.masses import decay_table
from whereish.solvers.splines.blocks import Block
from whereish.solvers.splines.points import NearBlock, NearLaws, near_block
from whereish.solvers.tables.law import ReportTable

__all__ = ["laws_of_table", "table_blocks"]


def table_blocks(law: ReportTable) -> Iterator[tuple[IntArray, Block]]:
    """Up to 64 reports at a time, called by their nodes, with logarithms and masses at all nodes.

    The arrays are filled anew for every block.
    """
    logs, masses = _tables(law)
    shares = law.weights / float(law.weights.max())
    nodes = law.distances.shape[1]
    A, E = np.empty((nodes, LANES), np.float32), np.zeros((nodes, LANES), np.float32)
    top = np.zeros(nodes, np.float32)  # no report of a table is left out
    for start in range(0, len(shares), LANES):
        E[:] = 0.0
        for lane in range(LANES):
            # A short block repeats its last report, without mass: no sum, no maximum changes.
            report = min(start + lane, len(shares) - 1)
            row = law.distances[report]
            A[:, lane] = logs[row] - (logs[row.min()] + logs[row.max()]) / 2
            if start + lane < len(shares):
                E[:, lane] = shares[report] * masses[row]
        yield law.reported[start : start + LANES], (A, E, top)


def _near_blocks(law: ReportTable) -> Iterator[NearBlock]:
    """The same as distances: logarithms differ by these alone."""
    rows, cols = law.metric.shape
    shares = (law.weights / float(law.weights.max())).astype(np.float32)
    everywhere = np.tile(np.array([0, cols], np.int64), (rows, 1))
    D = np.empty((rows * cols, LANES), np.uint16)
    for start in range(0, len(shares), LANES):
        here, own = shares[start : start + LANES], np.zeros(LANES, np.float32)
        own[: len(here)] = here
        columns = np.minimum(np.arange(start, start + LANES), len(shares) - 1)
        D[:] = law.distances[columns].T
        yield near_block(D, own, everywhere, (0, cols), law.metric.quantum, all_count=True)


def laws_of_table(law: ReportTable) -> NearLaws:
    """What a table says at the nodes, as the bound of slopes needs it."""
    shape, quantum = law.metric.shape, law.metric.quantum
    logs, _ = _tables(law)
    grid = law.distances.reshape(-1, *shape)
    across, along = np.zeros((shape[0], shape[1] - 1)), np.zeros((shape[0] - 1, shape[1]))
    deepest = 0.0
    for layer in grid:
        wide = layer.astype(np.int32)
        np.maximum(across, np.abs(np.diff(wide, axis=1)), out=across)
        np.maximum(along, np.abs(np.diff(wide, axis=0)), out=along)
        deepest = max(deepest, float(logs[layer.min()] - logs[layer.max()]) / 2)
    whole = float(law.weights.max()) * float(decay_table(quantum)[0])
    return NearLaws(
        shares=lambda _: [(block for _, block in table_blocks(law))],
        log_sums=np.log(law.sums.astype(np.float64) / whole).reshape(shape),
        across=across * quantum,
        along=along * quantum,
        deepest=deepest,
        near=lambda _: [_near_blocks(law)],
    )


def _tables(law: ReportTable) -> tuple[FloatArray, FloatArray]:
    """ln of the masses' table, and the table, both relative to its first entry."""
    table = decay_table(law.metric.quantum)
    share = table / float(table[0])
    return np.log(share), share
