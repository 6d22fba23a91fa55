"""The globe: its distances, its kernel, and radii in true metres."""

from __future__ import annotations

from stress.mutant import Mutant

__all__ = ["MUTANTS"]

_SRC = "src/whereish/"
_LAW = "tests/mechanisms/noise/test_exact_law.py"
_RADII = "tests/mechanisms/noise/test_true_radii.py"
_DISTANCES = "tests/privacy/test_great_circle.py"

MUTANTS = (
    Mutant(
        "radius of the sphere not rounded down",
        _SRC + "space/sphere.py",
        "RADIUS_M = math.nextafter(WGS84_B**2 / WGS84_A, 0.0)",
        "RADIUS_M = WGS84_B**2 / WGS84_A",
        (
            "tests/mechanisms/test_level_rounding.py"
            "::test_the_sphere_lies_below_wgs84_to_the_last_bit",
        ),
        "great-circle distances exceed true ones by a last bit",
    ),
    Mutant(
        "rate of globe noise not rounded down",
        _SRC + "mechanisms/noise/globe_laplace.py",
        "return math.nextafter(self.epsilon.per_m * RADIUS_M, 0.0)",
        "return self.epsilon.per_m * RADIUS_M",
        (
            "tests/mechanisms/test_level_rounding.py"
            "::test_globe_noise_multiplies_by_the_radius_and_rounds_down",
        ),
        "epsilon in true metres is exceeded by a last bit",
    ),
    Mutant(
        "cosine of a latitude near a pole",
        _SRC + "space/sphere.py",
        "np.sin(np.radians(90.0 - np.abs(latitude)))",
        "np.cos(np.radians(latitude))",
        (_DISTANCES + "::test_distances_are_within_their_proven_error",),
        "distances near a pole are worse than certificates allow for",
    ),
    Mutant(
        "difference of longitudes rounded twice",
        _SRC + "space/sphere.py",
        "np.rint(total / 360.0)) + rest)",
        "np.rint(total / 360.0)) + 0 * rest)",
        (_DISTANCES + "::test_distances_are_within_their_proven_error",),
        "distances across the antimeridian are worse than certificates allow for",
    ),
    Mutant(
        "distances on the globe as exact as those on a plane",
        _SRC + "privacy/norms.py",
        "        return DISTANCE_ERROR\n",
        "        return 2.0**-53\n",
        (_DISTANCES + "::test_coordinate_errors_follow_the_metric",),
        "certificates allow for less error than the distances have",
    ),
    Mutant(
        "angle of a globe report without its error",
        _SRC + "mechanisms/noise/globe_offsets.py",
        "moved = slip + 12 * _U * abs(ahead)",
        "moved = 0 * slip + 12 * _U * abs(ahead)",
        (_LAW + "::test_the_errors_of_a_globe_report_are_bounded",),
        "doubles decide cells that they cannot know",
    ),
    Mutant(
        "longitude's error not divided by the distance from the axis",
        _SRC + "mechanisms/noise/globe_offsets.py",
        "abs(e) * wrong_a) * per_level) * per_level",
        "abs(e) * wrong_a) * per_level)",
        (_LAW + "::test_the_errors_of_a_globe_report_are_bounded",),
        "near a pole doubles decide cells that they cannot know",
    ),
    Mutant(
        "product of degrees rounded",
        _SRC + "mechanisms/noise/globe_offsets.py",
        "at = (p - whole) + (rest + beyond) + (away - whole_away) + 0.5",
        "at = (p - whole) + beyond + (away - whole_away) + 0.5",
        (_LAW + "::test_the_errors_of_a_globe_report_are_bounded",),
        "on fine lattices the place in a cell is off by more than its stated error",
    ),
    Mutant(
        "bits that a word leaves open forgotten in double-doubles",
        _SRC + "mechanisms/noise/globe_offsets.py",
        "moved = (2.0**-64 / a[0] + 2.0**-64 / b[0]) / rate + 2.0**-62",
        "moved = 2.0**-62",
        ("tests/sampling/test_double_double.py::test_what_a_word_leaves_open_is_within_the_error",),
        "double-doubles decide cells that they cannot know",
    ),
    Mutant(
        "product of two doubles without its last part",
        _SRC + "sampling/double_double.py",
        "return product, fma(a, b, -product)",
        "return product, a * b - product",
        ("tests/sampling/test_double_double.py::test_sums_products_quotients_and_roots",),
        "double-doubles are no better than one and a half",
    ),
    Mutant(
        "secret's place in its cell rounded",
        _SRC + "sampling/words.py",
        "return n, fma(-n, step, coordinate)",
        "return n, coordinate - n * step",
        (_LAW + "::test_what_is_left_of_a_coordinate_is_exact",),
        "far from the origin the place in a cell is off by more than its stated error",
    ),
    Mutant(
        "radius that forgets the lattice",
        _SRC + "mechanisms/calibration.py",
        "reach * self.stretch(reach, at) + self.rounding.m",
        "reach * self.stretch(reach, at)",
        (_RADII + "::test_radii_hold_the_rounded_report",),
        "a radius covers less than its stated probability",
    ),
    Mutant(
        "radius in metres of the sphere",
        _SRC + "space/sphere.py",
        "return WGS84_A / math.sqrt(1 - WGS84_E2 * sine * sine) / RADIUS_M",
        "return WGS84_A / math.sqrt(1 - 0 * WGS84_E2 * sine * sine) / RADIUS_M",
        (_RADII + "::test_true_metres_bound_every_direction",),
        "a radius covers less than its stated probability away from the equator",
    ),
    Mutant(
        "calibration that ends early",
        _SRC + "mechanisms/calibration.py",
        "for _ in range(64):",
        "for _ in range(24):",
        ("tests/mechanisms/noise/test_laplace.py::test_constructors_from_what_people_know",),
        "the error asked for is missed in the sixth digit",
    ),
)
