"""The field test: claimed and measured epsilon of what people use, with the worst pair found.

The black-box auditor draws reports of pairs of places, chooses a pair and an event on one part and
bounds epsilon from below on the other (confidence 0.9999).  A claim is refuted above 1.  For
samplers without a claim the bound stands alone: it grows with the number of samples where
there is no epsilon at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from whereish.arrays import FloatArray
from whereish.audit.exact import exact
from whereish.audit.statistical import StatisticalAudit, statistical
from whereish.audit.support import TextbookPlanarLaplace, support
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.privacy.norms import Euclidean
from whereish.space.raster import Raster
from whereish.studies.field import samplers
from whereish.studies.field.known import circle_centres, reports_needed, trace_ends
from whereish.studies.field.samplers import EPSILON, REGION_M, Sampler
from whereish.studies.figures import figure
from whereish.studies.framework.study import Run, Study
from whereish.units import Epsilon

__all__ = ["STUDY", "TOOLS", "Tool"]

_NO_QIF = "qif is not installed: pip install 'whereish[bench]'"
_SQUARE = np.array([[0.0, 0.0], [150.0, 0.0], [0.0, 150.0], [150.0, 150.0], [300.0, 300.0]])
_CORNER = np.array([[REGION_M, REGION_M], [REGION_M - 200, REGION_M - 200], [0.0, 0.0]])
_NEAR = np.array([[0.0, 0.0], [1.0, 0.0]])
_FAR = np.array([[0.0, 0.0], [200.0, 0.0], [600.0, 0.0], [1200.0, 0.0]])


@dataclass(frozen=True)
class Tool:
    """Something that people use.

    Attributes
    ----------
    key
        Of the claim in the table of published numbers; empty without a claim.
    places
        Those whose pairs are tried.
    seen
        What the auditor makes of a report before he counts: any function of it is allowed.
    """

    name: str
    make: Callable[[np.random.Generator], Sampler]
    places: FloatArray
    key: str = ""
    seen: Callable[[FloatArray], FloatArray] | None = None


def _on_steps(reports: FloatArray) -> FloatArray:
    """Whether the distance from the origin is no multiple of Location Guard's step."""
    steps = np.hypot(*reports.T) / samplers.GUARD_STEP_M
    return np.asarray(np.abs(steps - np.round(steps))[:, None] > 1e-3, dtype=np.float64)


TOOLS = (
    Tool("textbook planar Laplace", samplers.textbook, _SQUARE, "textbook"),
    Tool("Location Guard's rounding", samplers.location_guard, _NEAR, "location-guard", _on_steps),
    Tool("per-coordinate Laplace", samplers.per_coordinate, _SQUARE, "per-coordinate"),
    Tool("resampling into a region", samplers.resampled, _CORNER, "resampled"),
    Tool("qif, planar Laplace", samplers.qif_laplace, _SQUARE, "qif-laplace"),
    Tool("Gaussian offset, 200 m", samplers.gaussian, _FAR),
    Tool("three decimals of a degree", samplers.truncated, _FAR),
    Tool("Android's coarse location", samplers.coarse_location, 3 * _FAR),
    Tool("offset keyed by device, 500 m", samplers.keyed_offset, _FAR),
)


def _audited(tool: Tool, run: Run) -> StatisticalAudit:
    sample = tool.make(run.public)
    seen = tool.seen
    samples = 20_000 if run.quick else 400_000

    def shown(places: FloatArray) -> FloatArray:
        reports = sample(places)
        return reports if seen is None else seen(reports)

    return statistical(
        shown, at=tool.places, metric=Euclidean(), epsilon=EPSILON, samples=samples, rng=run.rng
    )


def _worst(audit: StatisticalAudit) -> str:
    assert audit.secrets is not None
    (a, b), (c, d) = audit.secrets
    return f"({a:g}, {b:g}) and ({c:g}, {d:g})"


@dataclass(frozen=True)
class _Row:
    """A line of the table; ratios are to EPSILON."""

    name: str
    claim: float | None
    measured: float | None
    worst: str
    known: float | None

    @property
    def cells(self) -> tuple[object, ...]:
        known: object = "-"
        if self.known is not None:
            known = "more than tried" if math.isinf(self.known) else int(self.known)
        claim = "none" if self.claim is None else self.claim
        return self.name, claim, "-" if self.measured is None else self.measured, self.worst, known


def _run(run: Run) -> None:
    trials = 100 if run.quick else 400
    rows = [_own_row(run, trials)]
    for tool in run.steps(TOOLS, "black-box audits"):
        if tool.name.startswith("qif") and find_spec("qif") is None:
            run.cannot_compare(tool.key, _NO_QIF)
            continue
        audit = _audited(tool, run)
        ratio = audit.epsilon_lower / EPSILON
        if tool.key:
            run.compare(
                tool.key,
                ratio,
                reason=f"with confidence {audit.confidence:g} the places {_worst(audit)} are told"
                f" apart by {audit.level_lower:.3g} nats, {ratio:.3g} times what the claim allows",
            )
        known = reports_needed(tool.make(run.public), run.public, trials=trials)
        rows.append(_Row(tool.name, 1.0 if tool.key else None, ratio, _worst(audit), known))
    rows += _qif_grids(run)
    rows += _exclusion_zones(run, trials)
    head = (
        "what",
        f"claimed / ({EPSILON:.5f}/m)",
        "measured, at least",
        "worst pair (m)",
        "reports until known within 50 m",
    )
    run.table("Claimed and measured epsilon", head, [row.cells for row in rows])
    run.note(
        "Repeated reports have fresh noise (fresh keys, fresh sessions); the attacker takes their"
        " geometric median, or the centre of the circle through the ends of tracks. An offset that"
        " a device keeps is known for all places as soon as one of its places is known. qif draws"
        " from a generator of its own, so its line changes from run to run."
    )
    _doubles(run)
    _draw(run, rows)


def _own_row(run: Run, trials: int) -> _Row:
    """The control: this package's planar Laplace, by the same audit and attack."""
    mechanism = PlanarLaplace(Epsilon(EPSILON))

    def sample(places: FloatArray) -> FloatArray:
        return mechanism.report(places, rng=run.rng).coordinates

    audit = _audited(Tool("whereish, planar Laplace", lambda _: sample, _SQUARE), run)
    known = reports_needed(sample, run.public, trials=trials)
    return _Row(
        "whereish, planar Laplace", 1.0, audit.epsilon_lower / EPSILON, _worst(audit), known
    )


def _qif_grids(run: Run) -> list[_Row]:
    """qif's channels have all their numbers: they are audited exactly."""
    if find_spec("qif") is None:
        for key in ("qif-laplace-grid", "qif-geometric-grid"):
            run.cannot_compare(key, _NO_QIF)
        return []
    grid = Raster(9, 9, (100.0, 100.0))
    rows = []
    for key, matrix in samplers.qif_grids(9, 100.0).items():
        audit = exact(matrix, EPSILON * Euclidean().matrix(grid.centres()))
        assert audit.worst is not None
        first, other = (grid.centres()[cell] for cell in audit.worst[:2])
        worst = f"({first[0]:g}, {first[1]:g}) and ({other[0]:g}, {other[1]:g})"
        run.compare(
            key,
            audit.factor_lower,
            reason=f"of its own numbers the largest ratio, between {worst}, is that of"
            f" {audit.factor_lower:.7f} times the claim",
        )
        name = f"qif, {key.split('-')[1]} on a grid"
        rows.append(_Row(name, 1.0, audit.factor_lower, worst, None))
    return rows


def _exclusion_zones(run: Run, trials: int) -> list[_Row]:
    """Tracks cut inside a circle around home: their ends lie on it."""
    ends = trace_ends(400.0, 30.0, run.public)
    centred = reports_needed(ends, run.public, trials=trials, guess=circle_centres)

    def displaced(homes: FloatArray) -> FloatArray:
        """The zone's centre is somewhere else, the same for all tracks of a home."""
        _, home = np.unique(homes, axis=0, return_inverse=True)
        shift = run.public.uniform(-150, 150, (int(home.max()) + 1, 2))
        return ends(homes + shift[home.ravel()])

    moved = reports_needed(displaced, run.public, trials=trials, guess=circle_centres, most=160)
    name = "exclusion zone of 400 m around home"
    return [
        _Row(name, None, None, "ends of tracks", centred),
        _Row(f"{name}, centre up to 150 m off", None, None, "ends of tracks", moved),
    ]


def _doubles(run: Run) -> None:
    """Which wrong candidates a single report of the textbook sampler excludes for certain."""
    sampler = TextbookPlanarLaplace(Epsilon(EPSILON))
    count = 100 if run.quick else 1000
    home, other = np.array([0.0, 0.0]), np.array([1.0, 0.0])
    reports = sampler.sample(np.tile(home, (count, 1)), run.public)
    wrong = support(sampler, reports, other).excluded
    right = support(sampler, reports, home).excluded
    run.note(
        f"Textbook planar Laplace in doubles at the origin of its plane: {wrong} of {count} single"
        f" reports exclude for certain a wrong place 1 m away, and {right} the true one."
    )


def _draw(run: Run, rows: list[_Row]) -> None:
    claimed = [row for row in rows if row.claim is not None]
    values = [row.measured or 0.0 for row in claimed]
    axes = figure("measured epsilon / claimed epsilon (lower bound)", "")
    colours = ["#d55e00" if value > 1 else "#0072b2" for value in values]
    axes.barh([row.name for row in claimed], values, color=colours)
    for at, value in enumerate(values):
        axes.text(1.08 * max(value, 1.0), at, f"{value:.7g}", va="center", fontsize=9)
    axes.axvline(1, color="black", linestyle="-", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlim(0.3, 6 * max(values))
    axes.invert_yaxis()
    run.draw("claims", axes, "Measured against claimed epsilon; beyond the line it is refuted.")


STUDY = Study("field-audit", "The field test: what people use, audited", "F", 9, _run)
