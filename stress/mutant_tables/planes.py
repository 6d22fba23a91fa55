"""Planes: what a projection stretches, and what is charged for it."""

from __future__ import annotations

from stress.mutant import Mutant

__all__ = ["MUTANTS"]

_SPACE = "src/whereish/space/"
_TESTS = "tests/space/test_planes.py"

MUTANTS = (
    Mutant(
        "scale of a plane without its margin",
        _SPACE + "projection/stretch.py",
        "else largest_bound(chain.bounds, box) * (1 + MARGIN)",
        "else largest_bound(chain.bounds, box)",
        (_TESTS + "::test_the_charge_keeps_its_margin_above_the_largest_stretch",),
        "roundings here and in PROJ stretch a distance beyond what is charged",
    ),
    Mutant(
        "geodesics of a sphere",
        _SPACE + "projection/stretch.py",
        "half = math.radians(region.width / 2) * WGS84.a / WGS84.b",
        "half = math.radians(region.width / 2)",
        (_TESTS + "::test_wide_regions_hold_their_geodesics",),
        "the way between two places leaves the box over which the stretch is bounded",
    ),
    Mutant(
        "stretch bounded over the declared box only",
        _SPACE + "projection/stretch.py",
        "math.tan(math.radians(lat)) / math.cos(half)",
        "math.tan(math.radians(lat)) / math.cos(0 * half)",
        (_TESTS + "::test_wide_regions_hold_their_geodesics",),
        "the way between two places leaves the box over which the stretch is bounded",
    ),
    Mutant(
        "largest stretch in the middles of cells",
        _SPACE + "projection/stretch.py",
        "upper = upper * image.stretch * last",
        "upper = value * image.stretch * last",
        (_TESTS + "::test_no_short_segment_is_stretched_beyond_the_charge",),
        "the scale factor is sampled and called a theorem",
    ),
    Mutant(
        "smallest stretch in the middles of cells",
        _SPACE + "projection/stretch.py",
        "upper = 1 / (lower * image.least * last)",
        "upper = 1 / (value * image.least * last)",
        (_TESTS + "::test_the_smallest_factor_is_proven_and_tight",),
        "radii count with a factor that was sampled",
    ),
    Mutant(
        "radii over the declared region only",
        _SPACE + "projection/contraction.py",
        "box = _surroundings(part, reach)",
        "box = _surroundings(part, 0.0)",
        (_TESTS + "::test_the_smallest_factor_is_proven_and_tight",),
        "reports fall where the factor was not bounded",
    ),
    Mutant(
        "conformal scale that falls nowhere",
        _SPACE + "projection/conformal.py",
        "np.exp(way * change)",
        "np.exp(max(way, 0.0) * change)",
        (_TESTS + "::test_the_smallest_factor_is_proven_and_tight",),
        "a lower bound that is none",
    ),
    Mutant(
        "cosine of an interval without its top",
        _SPACE + "projection/interval.py",
        "np.where(top, 1.0, np.maximum(*ends))",
        "np.maximum(*ends)",
        ("tests/space/test_interval.py::test_one_number",),
        "an enclosure that does not enclose where a function turns",
    ),
    Mutant(
        "interval product of two ends",
        _SPACE + "projection/interval.py",
        "self.hi * other.lo, self.hi * other.hi]",
        "self.lo * other.lo, self.hi * other.hi]",
        ("tests/space/test_interval.py::test_two_numbers",),
        "an enclosure that does not enclose where signs differ",
    ),
)
