"""Expected squared error of an integer law, and its Bayesian remap, without a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray, IntArray
from whereish.compiled import kernel
from whereish.solvers.eikonal.certify import CertifiedLaw
from whereish.solvers.geodesic.graph_metric import HORIZON, GraphMetric
from whereish.solvers.geodesic.lanes import LANES
from whereish.solvers.geodesic.sweeps import BORDER, batch_distances, padded_cell
from whereish.solvers.tables.error import table_errors, table_means
from whereish.solvers.tables.law import ReportTable

__all__ = [
    "Judged",
    "errors_of",
    "judged",
    "judged_table",
    "posterior_means",
    "sampled_error",
    "squared_errors",
]

_SAMPLE = 256
"""Secrets on which laws are compared: four batches, where all secrets of a large map are 600."""

_JUDGED = 12.0
"""Nats within which the posterior of a report is taken where laws are only compared."""

_MOVED = 0.75
"""What the error of moved reports counts for where laws are compared."""


@kernel
def _squared_errors(
    edges: Any, offsets: Any, rows: int, cols: int, order: Any, masses: Any, places: Any, to: Any
) -> FloatArray:
    pitch = cols + 2 * BORDER
    D = np.empty(((rows + 2 * BORDER) * pitch, LANES), np.uint16)
    sources = np.empty(LANES, np.int64)
    total, mass = np.empty(LANES), np.empty(LANES)
    here = np.zeros((LANES, 2))
    out = np.zeros(rows * cols)
    weights, decay = masses
    for start in range(0, len(order), LANES):
        for lane in range(LANES):
            cell = order[min(start + lane, len(order) - 1)]
            sources[lane] = padded_cell(cell, cols)
            here[lane] = places[cell]
        batch_distances(D, edges, offsets, rows, cols, sources, 0)
        total[:] = 0.0
        mass[:] = 0.0
        for i in range(rows):
            for j in range(cols):
                y, c = i * cols + j, (i + BORDER) * pitch + j + BORDER
                if weights[y] > 0:
                    x0, x1 = to[y, 0], to[y, 1]
                    for lane in range(LANES):
                        p = weights[y] * decay[D[c, lane]]
                        a, b = here[lane, 0] - x0, here[lane, 1] - x1
                        mass[lane] += p
                        total[lane] += p * (a * a + b * b)
        for lane in range(min(LANES, len(order) - start)):
            out[order[start + lane]] = total[lane] / mass[lane]
    return out


def squared_errors(
    law: CertifiedLaw, secrets: IntArray, places: FloatArray, reports: FloatArray
) -> FloatArray:
    """E |reports[Y] - places[u]|^2 for every secret u, Y drawn from its law.

    `places` and `reports` are (cells, 2): where each cell is, and what it is reported as.
    """
    metric = law.metric
    order = metric.order[np.isin(metric.order, secrets)]
    masses = (law.weights.astype(np.float64), law.table.astype(np.float64))
    out = _squared_errors(
        metric.edges, metric.offsets, *metric.shape, order, masses, places, reports
    )
    return np.asarray(out[secrets])


def posterior_means(
    law: CertifiedLaw,
    secrets: IntArray,
    places: FloatArray,
    prior: FloatArray,
    *,
    horizon: float = HORIZON,
    wanted: NDArray[np.bool_] | None = None,
) -> FloatArray:
    """The posterior mean place of every report: the remap that is best for squared error.

    `prior` is over the secrets.  The weight of a report cancels from its posterior.  Reports so far
    out in a frame that single precision has no posterior for them go to the box of the secrets.
    A nearer `horizon` (nats) leaves out what is farther: sooner, and less exact.  With `wanted`,
    only those reports are moved.
    """
    middle = places[secrets].mean(axis=0)
    q = np.zeros(law.metric.cells)
    q[secrets] = prior / law.sums[secrets].astype(np.float64)
    q /= q.max()
    centred = places - middle
    sides = np.column_stack([q, q * centred[:, 0], q * centred[:, 1]])
    moments = law.metric.product(sides, law.core, horizon=horizon, wanted=wanted)
    mass = moments[:, :1]
    means = np.where(mass > 0, middle + moments[:, 1:] / np.where(mass > 0, mass, 1.0), places)
    return np.clip(means, places[secrets].min(axis=0), places[secrets].max(axis=0))


def sampled_error(
    metric: GraphMetric,
    weights: FloatArray,
    secrets: IntArray,
    places: FloatArray,
    prior: FloatArray | None = None,
    reports: FloatArray | None = None,
) -> float:
    """Mean squared error of the law weights·e^{-d}/Z, over some of the `secrets`, always the same.

    `prior` is over the secrets (uniform for None); `places` are those of all cells, `reports` what
    these are reported as (the same for None).
    """
    share = np.ones(len(secrets)) if prior is None else prior
    chosen = _chosen(share)
    share = share[chosen]
    if share.sum() == 0:
        return 0.0
    errors = errors_of(metric, weights, secrets[chosen], places, reports)
    return float(share @ errors) / float(share.sum())


def _chosen(share: FloatArray) -> IntArray:
    """The secrets on which laws are compared, always the same; all somewhere people are."""
    drawn = np.random.default_rng(0).permutation(len(share))
    return drawn[share[drawn] > 0][:_SAMPLE]


def errors_of(
    metric: GraphMetric,
    weights: FloatArray,
    cells: IntArray,
    places: FloatArray,
    reports: FloatArray | None = None,
) -> FloatArray:
    """Squared error of each of some `cells`, of the law weights·e^{-d}/Z."""
    middle = places[cells].mean(axis=0)
    at = places - middle
    to = at if reports is None else reports - middle
    moments = np.column_stack([np.ones(len(to)), to, (to**2).sum(axis=1)])
    errors = np.empty(len(cells))
    for start in range(0, len(cells), LANES):
        here = cells[start : start + LANES]
        masses = weights * np.exp(-metric.quantum * metric.distances(here))
        mass, x, y, square = (masses @ moments).T
        ux, uy = at[here].T
        errors[start : start + LANES] = (square - 2 * (ux * x + uy * y)) / mass + ux**2 + uy**2
    return np.maximum(errors, 0.0)  # where all reports are moved to the secret


@dataclass(frozen=True, eq=False)
class Judged:
    """What a law is worth: the error of its reports as drawn, and moved to posterior means.

    Attributes
    ----------
    drawn, moved : of :func:`sampled_error`.
    reports : where each report is moved to.
    """

    drawn: float
    moved: float
    reports: FloatArray

    @property
    def error(self) -> float:
        """A mean of both in logarithms.

        A per cent of the error of moved reports, which are recommended, is worth three of the
        other.  On maps of few nats the law that is best when moved has most of its reports along
        the edge, and as drawn is worse than one that tells less.
        """
        return float(self.drawn ** (1.0 - _MOVED) * self.moved**_MOVED)


def judged(
    law: CertifiedLaw, secrets: IntArray, places: FloatArray, prior: FloatArray | None = None
) -> Judged:
    """The errors that laws are compared by; `prior` is over the secrets, uniform for None."""
    share = np.full(len(secrets), 1.0 / len(secrets)) if prior is None else prior
    if share.sum() == 0:
        return Judged(0.0, 0.0, places)
    given = law.weights > 0
    moved = posterior_means(law, secrets, places, share, horizon=_JUDGED, wanted=given)
    weights = law.weights.astype(np.float64)
    drawn, remapped = (
        sampled_error(law.metric, weights, secrets, places, prior, reports)
        for reports in (None, moved)
    )
    return Judged(drawn, remapped, moved)


def judged_table(law: ReportTable, places: FloatArray, prior: FloatArray) -> Judged:
    """The same of a table, over the same of its cells."""
    means = table_means(law, places, prior)
    chosen = _chosen(prior)
    share = prior[chosen] / prior[chosen].sum()
    drawn, moved = (
        float(share @ table_errors(law, places, reports)[chosen])
        for reports in (places[law.reported], means)
    )
    reports = places.copy()
    reports[law.reported] = means
    return Judged(drawn, moved, reports)
