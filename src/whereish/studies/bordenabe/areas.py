"""Areas of interest and of retrieval (section 5.3): how far, how much more to fetch.

With the area of interest of radius rad_I around the place and that of retrieval of radius rad_R
around the report, rad_R = rad_I + C^-1(confidence), C being the distribution of planar Laplace's
distance.  What is fetched in vain is density x (area of retrieval - area of interest) x size.
"""

from __future__ import annotations

import math

import numpy as np

from whereish.lbs.areas import bandwidth_overhead
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.studies.figures import panels
from whereish.studies.framework.study import Run, Study
from whereish.units import Length

__all__ = ["STUDY"]

_INTEREST_M = 300.0
_CONFIDENCES = (0.9, 0.95, 0.99)
_BYTES = 840.0
_CITIES = {"paris": 137.0, "buenos-aires": 22.0}
_LEVELS = (6, 4, 2)


def _noise(level: int) -> PlanarLaplace:
    return PlanarLaplace(f"ln({level})/200 m")


def _retrieval_m(level: int, confidence: float) -> float:
    """The ideal report's quantile, as in the thesis, without the lattice of our reports."""
    return _INTEREST_M + _noise(level).ideal_quantile(confidence).m


def _kilobytes(per_km2: float, level: int, confidence: float) -> float:
    around = Length(_retrieval_m(level, confidence))
    more = bandwidth_overhead(around, Length(_INTEREST_M), per_km2=per_km2, bytes_each=_BYTES)
    return more.bytes / 1000


def _ratio(level: int, confidence: float) -> float:
    return (_retrieval_m(level, confidence) / _INTEREST_M) ** 2


def _table_5_1(run: Run) -> None:
    rows = []
    for city, density in _CITIES.items():
        for level in _LEVELS:
            found = [_kilobytes(density, level, c) for c in _CONFIDENCES]
            rows.append((city.replace("-", " "), f"ln {level}", *found))
            for confidence, value in zip(_CONFIDENCES, found, strict=True):
                run.compare(
                    f"{city}-ln{level}-{confidence * 100:.0f}",
                    value,
                    reason=f"the formula, which gives the cells that agree, gives {value:.1f} KB",
                )
    head = ("city", "l", *(f"KB at {c:.0%}" for c in _CONFIDENCES))
    run.table("Table 5.1, as obtained", head, rows)
    paris = _kilobytes(_CITIES["paris"], 4, 0.99)
    run.compare(
        "text-557",
        paris,
        reason=f"the formula gives {paris:.1f} KB, which is the table's number and not the text's",
    )
    cells = [f for f in run.findings if f.published.where == "Table 5.1"]
    agreeing = sum(finding.verdict == "matches" for finding in cells)
    run.note(f"Table 5.1: {agreeing} of {len(cells)} cells agree.")


def _draw(run: Run) -> None:
    accuracy, overhead = panels(2, width=5)
    radii = np.linspace(0, 1200, 241)
    for level in _LEVELS:
        noise = _noise(level)
        chances = [noise.cdf(Length(radius)) for radius in radii]
        accuracy.plot(radii, chances, label=f"l = ln {level} within 200 m")
    accuracy.set(xlabel="radius (m)", ylabel="probability of a report within it", ylim=(0, 1.02))
    accuracy.set_title("Figure 5.10: distance of a report")
    accuracy.legend(loc="lower right")
    confidences = np.linspace(0.5, 0.99, 99)
    for level in _LEVELS:
        ratios = [_ratio(level, confidence) for confidence in confidences]
        overhead.plot(confidences, ratios, label=f"l = ln {level} within 200 m")
    overhead.set(xlabel="confidence", ylabel="area of retrieval / area of interest")
    overhead.set_title("Figure 5.11: overhead for rad_I = 300 m")
    overhead.set_ylim(0, 60)
    overhead.legend(loc="upper left")
    run.draw("areas", overhead, "Accuracy and bandwidth overhead of planar Laplace noise.")


def _run(run: Run) -> None:
    noise = _noise(4)
    for radius in (390, 560, 690, 1000):
        run.compare(f"within-{radius}", noise.cdf(Length(radius)))
    run.compare("worst-ratio", _ratio(2, 0.99))
    ratio = _ratio(4, 0.95)
    run.compare(
        "ratio",
        ratio,
        reason=f"the formula gives {ratio:.3f}, which was cut to {math.floor(10 * ratio) / 10}"
        " instead of rounded",
    )
    _table_5_1(run)
    _draw(run)


STUDY = Study(
    "b-areas", "Areas of interest and retrieval: Figures 5.10, 5.11, Table 5.1", "B", 510, _run
)
