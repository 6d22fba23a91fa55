"""Input that cannot be meant is refused, and before any work is done for it."""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np
import pytest

from whereish.data.visits import Visits
from whereish.errors import InvalidInput
from whereish.mechanisms.channels.cloaking import (
    cloaking_channel,
    identity_channel,
    uniform_channel,
)
from whereish.mechanisms.channels.exponential import exponential_channel
from whereish.mechanisms.channels.laplace import laplace_channel
from whereish.mechanisms.channels.opt_priv import opt_priv_channel
from whereish.mechanisms.channels.optimal import optimal_channel
from whereish.mechanisms.channels.tight import tight_channel
from whereish.mechanisms.maps import options as eikonal_build
from whereish.mechanisms.maps import query as eikonal_query
from whereish.mechanisms.maps.eikonal import EikonalMechanism
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.privacy.norms import Euclidean
from whereish.space.box import Box
from whereish.space.plane import Plane
from whereish.space.points import Points, seem_degrees
from whereish.space.raster import Raster
from whereish.space.sites import Sites
from whereish.space.sphere import Sphere

PARIS = np.array([[2.29, 48.86], [2.35, 48.85], [2.34, 48.89], [2.40, 48.87]])
REGION = Plane.projected("EPSG:2154", Box(2.2, 48.8, 2.5, 48.95))

BUILDERS = {
    "optimal": lambda sites: optimal_channel(sites, None, "10/km"),
    "optimal in nats": lambda sites: optimal_channel(sites, None, None, metric=0.01 * Euclidean()),
    "exponential": lambda sites: exponential_channel(sites, "10/km"),
    "tight": lambda sites: tight_channel(sites, "10/km"),
    "laplace": lambda sites: laplace_channel(sites, "10/km"),
    "laplace secrets": lambda sites: laplace_channel(
        Raster(2, 2, (1.0, 1.0)), "10/km", secrets=sites
    ),
    "OptPriv": lambda sites: opt_priv_channel(sites, None, most_loss="800 m"),
}
OTHERS = {
    "cloaking": lambda sites: cloaking_channel(sites, np.zeros(len(sites))),
    "identity": identity_channel,
    "uniform": uniform_channel,
}


@pytest.mark.parametrize("name", BUILDERS)
def test_longitudes_and_latitudes_are_not_taken_for_metres(name):
    for places in (PARIS, PARIS[:, ::-1], PARIS.tolist()):
        with pytest.raises(InvalidInput, match=r"seem to be degrees.*Plane\.metres\(\)"):
            BUILDERS[name](places)


@pytest.mark.parametrize("name", sorted(set(BUILDERS) - {"OptPriv", "laplace secrets"}))
@pytest.mark.parametrize(
    "places",
    [
        Points(PARIS, Plane.metres()),
        Sites(Points(PARIS, Plane.metres())),
        np.array([[0.0, 0.0], [60.0, 0.0], [0.0, 60.0]]),  # at 10/km 0.85 nats, within 360
        PARIS + 400.0,  # close, but beyond all degrees
    ],
)
def test_metres_that_are_declared_or_far_enough_apart_pass(name, places):
    assert len(BUILDERS[name](places).secrets) >= 3


def test_degrees_of_the_globe_and_matrices_pass():
    assert len(optimal_channel(Points(PARIS, Sphere()), None, "1/km").secrets) == 4
    matrix = np.where(np.eye(4), 0.0, 0.3)
    assert len(optimal_channel(PARIS, None, None, metric=matrix).secrets) == 4
    assert not seem_degrees([[0.0, 361.0]], 0.1)
    assert not seem_degrees([[0.0, 1.0]], 0.5)
    assert not seem_degrees([[0.0, 1.0]], 0.0)  # one place, or all in one
    assert seem_degrees([[-180.0, 90.0], [180.0, 0.0]], 0.49)


@pytest.mark.parametrize("name", [*BUILDERS, *OTHERS])
def test_sites_outside_the_region_are_refused_before_the_solve(name, monkeypatch):
    inside = REGION.from_degrees(*PARIS.T).coordinates
    outside = Sites(Points(np.append(inside, [[0.0, 0.0]], axis=0), REGION))
    for module, work in WORK:
        monkeypatch.setattr(f"whereish.mechanisms.channels.{module}.{work}", _never)
    with pytest.raises(InvalidInput, match="declared region; 1 of 5"):
        {**BUILDERS, **OTHERS}[name](outside)


WORK = [
    ("optimal", "solve_optimal"),
    ("opt_priv", "solve_opt_priv"),
    ("tight", "tight_matrix"),
    ("laplace", "voronoi_masses"),
    ("laplace", "clamped_masses"),
    ("laplace", "clamped_masses_of"),
    ("inputs", "sites_metric"),
    ("inputs", "loss_matrix"),
    ("cloaking", "rounded_rows"),
]


def _never(*_: object, **__: object) -> None:
    raise AssertionError("work was begun")


@pytest.mark.parametrize("name", [*BUILDERS, *OTHERS])
def test_a_channel_that_cannot_be_held_is_refused_at_once(name):
    huge = Raster(100_000, 100_000, (10.0, 10.0))
    wide = Sites(Points(np.zeros((20_000, 2)), Plane()))
    builders = {**BUILDERS, **OTHERS, "cloaking": OTHERS["identity"]}
    began = time.process_time()
    for places in (huge, wide):
        if name == "laplace secrets" and places is wide:
            continue  # four reports only
        with pytest.raises(InvalidInput, match="entries"):
            builders[name](places)
    assert time.process_time() - began < 2.0


@pytest.mark.parametrize(
    "options",
    [
        {"gap": 0.0},
        {"gap": float("nan")},
        {"dilation": 0.5},
        {"dilation": float("nan")},
        {"dilation": float("inf")},
        {"time_limit": -1.0},
        {"time_limit": float("nan")},
    ],
)
def test_options_of_the_optimum_are_checked_first(options, monkeypatch):
    monkeypatch.setattr("whereish.mechanisms.channels.optimal.kept_on", _never)
    with pytest.raises(InvalidInput, match=next(iter(options))):
        optimal_channel(PARIS * 1e5, None, "1/km", **options)


def test_text_is_no_place_prior_loss_or_metric():
    sites = Points(PARIS, Sphere())
    texts = np.array([["1_1", "2"], ["3", "4"]])
    for build in (
        lambda: optimal_channel(texts, None, "1/km"),
        lambda: optimal_channel(sites, ["1_0", "0", "0", "0"], "1/km"),
        lambda: optimal_channel(sites, None, "1/km", loss=np.full((4, 4), "1")),
        lambda: optimal_channel(sites, None, None, metric=np.full((4, 4), "0")),
        lambda: PrivacyMap([["1e-3"]], "1 m"),
        lambda: PrivacyMap.from_density([["1"]], slope=1, offset=1, per="km", cell="1 m"),
    ):
        with pytest.raises(InvalidInput, match="must be numbers"):
            build()


def test_masked_cells_are_no_levels():
    """rasterio marks cells without data by a mask, with 1e20 under it."""
    masked = np.ma.masked_values(np.array([[1e20, 5.0]], np.float32), 1e20)
    with pytest.raises(InvalidInput, match="masked"):
        PrivacyMap.from_density(masked, slope=1e-4, offset=0.4, high=2.0, per="km", cell="1 km")
    with pytest.raises(InvalidInput, match="masked"):
        PrivacyMap(np.ma.masked_values([[1.0, 1e-3]], 1.0), "1 km")


@pytest.mark.parametrize("mark", [1e20, 3.4028235e38, 1.8e308, 751010101.0, -9999.0, np.nan])
def test_marks_of_missing_data_do_not_become_the_loosest_level(mark):
    with pytest.raises(InvalidInput, match="density"):
        PrivacyMap.from_density(
            [[4000.0, mark]], slope=1e-4, offset=0.4, high=2.0, per="km", cell="1 km"
        )
    dense = PrivacyMap.from_density(
        [[1e6, 1e8]], slope=1e-4, offset=0.4, high=2.0, per="km", cell="1 km"
    )
    assert dense.values.max() == 2e-3


def test_low_above_high_is_refused():
    with pytest.raises(InvalidInput, match="low must be at most high"):
        PrivacyMap.from_density(
            [[1.0]], slope=1, offset=1, low=3.0, high=2.0, per="km", cell="1 km"
        )


def too_large() -> PrivacyMap:
    return PrivacyMap(np.full((513, 512), 1e-3), "1 km")


def elsewhere() -> PrivacyMap:
    """A map in France, over its region with longitude and latitude swapped: off Somalia."""
    swapped = Plane.projected("EPSG:32639", Box(48.8, 2.2, 48.95, 2.5))
    return PrivacyMap(np.full((4, 4), 1e-3), "1 km", (650000.0, 6860000.0), swapped)


@pytest.mark.parametrize(("made", "words"), [(too_large, "262,144 cells"), (elsewhere, "swapped")])
def test_a_map_too_large_or_outside_its_region_is_refused_before_work(made, words, monkeypatch):
    privacy_map = made()
    for module, name in (
        (eikonal_build, "law_on_cells"),
        (eikonal_build, "law_on_places"),
        (eikonal_query, "law_on_answers"),
        (eikonal_query, "check_resolution"),
    ):
        monkeypatch.setattr(module, name, _never)
    monkeypatch.setattr("whereish.mechanisms.maps.eikonal.exponential_law", _never)
    for build in (
        lambda: EikonalMechanism.build(privacy_map),
        lambda: EikonalMechanism.build(privacy_map, places="continuous"),
        lambda: EikonalMechanism.build(privacy_map, query=lambda centres: centres[:, 0] > 0),
        lambda: EikonalMechanism.exponential(privacy_map),
    ):
        with pytest.raises(InvalidInput, match=words):
            build()


def test_a_frame_too_wide_is_refused_before_work(monkeypatch):
    monkeypatch.setattr(eikonal_build, "law_on_cells", _never)
    with pytest.raises(InvalidInput, match="262,144 cells"):
        EikonalMechanism.build(PrivacyMap(np.full((4, 4), 1e-3), "1 km"), frame=255)


@pytest.mark.parametrize(
    "times",
    [
        [1_700_000_000, 1_700_003_600],  # seconds, hours? a guess
        [1.7e9, 1.7e9],
        np.array([1, Fraction(5)], object),
        [True, False],
        ["2024-01-01T08:00", "NaT"],
        np.array(["2024-01-01T08", "NaT"], "datetime64[h]"),
        [None, None],
    ],
)
def test_visits_need_times_that_say_what_they_are(times):
    with pytest.raises(InvalidInput, match="time"):
        Visits.of([[0.5, 0.5], [1.5, 0.5]], Raster(2, 2), users=["a", "b"], times=times)
