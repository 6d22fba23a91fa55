"""Location services: radii that hold, boxes that hold, one report for one question."""

from __future__ import annotations

from stress.mutant import Mutant

__all__ = ["MUTANTS"]

_LBS = "src/whereish/lbs/"
_TESTS = "tests/lbs/"

MUTANTS = (
    Mutant(
        "a map's places at the centres of their cells",
        _LBS + "report_errors.py",
        'return diagonal if mechanism.places == "bilinear" else diagonal / 2',
        "return 0.0",
        (_TESTS + "test_areas.py::test_maps_have_one_radius_or_one_for_each_report",),
        "somebody in a cell's corner is covered less often than stated",
    ),
    Mutant(
        "finite distances rounded down",
        _LBS + "report_errors.py",
        "np.ceil(distances / self._step * (1 - 2.0**-40))",
        "np.floor(distances / self._step * (1 - 2.0**-40))",
        (_TESTS + "test_areas.py::test_channels_for_the_worst_place_and_the_mean",),
        "a radius just below a site misses it",
    ),
    Mutant(
        "reports on a grid where they were drawn",
        _LBS + "report_errors.py",
        "moved=float(ways.max()) + half",
        "moved=0.0 * half",
        (_TESTS + "test_areas.py::test_the_area_of_interest_lies_inside_with_the_confidence",),
        "the way to a cell's centre is forgotten",
    ),
    Mutant(
        "a service on our Earth",
        _LBS + "sources/exchange.py",
        "ANOTHER_EARTH = 1.0101",
        "ANOTHER_EARTH = 0.99",
        (
            _TESTS
            + "test_services.py::test_everything_truly_near_comes_whatever_the_services_earth",
        ),
        "places within the radius are not asked for",
    ),
    Mutant(
        "a box as wide as at the equator",
        _LBS + "sources/source.py",
        "math.sin(math.radians(angle)) / math.cos(math.radians(lat))",
        "math.sin(math.radians(angle)) / 1.0",
        (_TESTS + "test_sources.py::test_boxes_hold_the_circle_and_are_tight",),
        "places to the east and west are not found",
    ),
    Mutant(
        "one box at the antimeridian",
        _LBS + "sources/source.py",
        "return [(west, south, 180.0, north), (-180.0, south, east - 360.0, north)]",
        "return [(west, south, 180.0, north)]",
        (_TESTS + "test_sources.py::test_everything_within_the_radius_and_little_more",),
        "places beyond the antimeridian are not found",
    ),
    Mutant(
        "a circle measured on the mean Earth",
        _LBS + "sources/source.py",
        "reach = math.sin(min(radius_m / RADIUS_M, math.pi) / 2) ** 2",
        "reach = math.sin(min(radius_m / 6378137.0, math.pi) / 2) ** 2",
        (_TESTS + "test_sources.py::test_everything_within_the_radius_and_little_more",),
        "places within the radius are left out",
    ),
    Mutant(
        "a pin without its zone",
        _LBS + "pins.py",
        "return Length(radius + self.zone.m), stated",
        "return Length(radius), stated",
        (_TESTS + "test_pins.py::test_a_pin_covers_exactly_its_zone",),
        "somebody in the zone is covered less often than stated",
    ),
    Mutant(
        "the nearest of the sphere",
        _LBS + "nearby.py",
        "reach = np.partition(on_sphere, k - 1)[k - 1] * true_metres() * (1 + 1e-9)",
        "reach = np.partition(on_sphere, k - 1)[k - 1] * (1 + 1e-9)",
        (_TESTS + "test_nearby.py::test_the_nearest_are_by_true_distance",),
        "a truly nearer place is left out",
    ),
    Mutant(
        "a retry that asks anew",
        _LBS + "sources/exchange.py",
        "response = self._client.send(request, stream=True)",
        "response = self._client.send(self._client.build_request(method, url), stream=True)",
        (_TESTS + "test_services.py::test_a_retry_is_the_same_request_to_the_byte",),
        "a retry is another question",
    ),
)
