"""What is saved is what is read: maps, channels and guarantees, from every type of number."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whereish.errors import InvalidInput
from whereish.mechanisms.channels.channel import Channel
from whereish.mechanisms.channels.exponential import exponential_channel
from whereish.mechanisms.channels.optimal import optimal_channel
from whereish.mechanisms.maps.eikonal import EikonalMechanism
from whereish.mechanisms.saved import load_artefact, space_from_json, space_to_json
from whereish.privacy.distinguishability import DistanceLevel, Distinguishability
from whereish.privacy.finite import Finite
from whereish.privacy.guarantee import Basis, Guarantee
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.privacy.metric import Metric, Scaled, Sum
from whereish.privacy.norms import Chebyshev, Euclidean, Geodesic, GreatCircle, Manhattan
from whereish.privacy.tuples import DifferentPlaces, Records, TupleMax, TupleSum
from whereish.space.box import Box
from whereish.space.line import Line
from whereish.space.plane import Plane
from whereish.space.points import Points
from whereish.space.raster import Raster
from whereish.space.sites import Sites
from whereish.space.sphere import Sphere
from whereish.space.values import Values
from whereish.units import Epsilon, Length

NUMBERS: dict[str, Callable[[int], Any]] = {
    "int": int,
    "float": float,
    "int64": np.int64,
    "float32": np.float32,
    "float64": np.float64,
    "longdouble": np.longdouble,
    "fraction": Fraction,
    "0-d array": np.asarray,
}
LEVELS = np.array([[1e-3, 2e-3, 1e-3], [2e-3, 3e-3, 4e-3]])


def as_text(value: Any) -> Any:
    return json.loads(json.dumps(value))


def maps(of: Callable[[int], Any]) -> dict[str, PrivacyMap]:
    """One map in each space, where all numbers are of one type."""
    cell, origin = (of(500), of(250)), (of(600000), of(6800000))
    region = Box(of(1), of(48), of(2), of(49))
    return {
        "metres": PrivacyMap(LEVELS, cell, (of(0), of(0))),
        "levels": PrivacyMap([[of(1), of(2)], [of(2), of(1)]], "1 m", (of(-3), of(0))),
        "projected": PrivacyMap(LEVELS, cell, origin, Plane.projected("EPSG:2154", region)),
        "line": PrivacyMap(LEVELS[0], cell, (of(5), of(6))),
        "density": PrivacyMap.from_density(
            [[of(0), of(10000)]], slope=1e-4, offset=0.4, per="km", cell=cell, origin=origin
        ),
    }


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("where", ["metres", "levels", "projected", "line", "density"])
def test_a_map_of_any_number_type_has_one_digest(kind, where):
    made = maps(NUMBERS[kind])[where]
    plain = maps(float)[where]
    assert made.digest() == plain.digest()
    assert json.dumps(made.to_json()) == json.dumps(plain.to_json())
    again = PrivacyMap.from_json(as_text(made.to_json()), made.values)
    assert (again.digest(), again.to_json()) == (made.digest(), made.to_json())


@pytest.mark.parametrize("kind", ["int", "float32", "float64", "fraction", "0-d array"])
@pytest.mark.parametrize("where", ["metres", "projected", "line", "density"])
@pytest.mark.parametrize("what", ["cells", "bilinear", "continuous", "query"])
def test_a_mechanism_under_any_map_is_read_again(kind, where, what, tmp_path):
    asked = maps(NUMBERS[kind])[where]
    query = np.arange(asked.values.size) if what == "query" else None
    places: Any = "cells" if what == "query" else what
    frame = None if what == "query" else 0
    built: Any = EikonalMechanism.build(asked, places=places, query=query, frame=frame)
    path = tmp_path / "map.npz"
    built.save(path)
    read = type(built).load(path)
    assert read.guarantee.to_json() == built.guarantee.to_json()
    assert read.map.digest() == asked.digest()
    np.testing.assert_array_equal(read.map.values, asked.values)


def test_the_map_of_the_issue_is_read_again(tmp_path):
    asked = PrivacyMap(np.full((12, 12), 1e-3), "500 m", origin=(0, 0))
    EikonalMechanism.build(asked, places="cells").save(tmp_path / "map.npz")
    assert EikonalMechanism.load(tmp_path / "map.npz").map.digest() == asked.digest()


def test_digests_of_plain_floats_are_those_of_files_that_exist():
    """Computed by the version before the digest had canonical bytes: its files still load."""
    projected = Plane.projected("EPSG:2154", Box(1.5, 48.2, 1.9, 48.5))
    known = {
        "79b302cc13c46a239a1ac6103bdede43690d917d5c9c363a9cb33a717f29923d": PrivacyMap(
            LEVELS, (10.0, 20.0), (5.0, 6.0)
        ),
        "8f600e7b0a5579d0e282c65aa296b843dfe83938b110ef65ea274bdffd852367": PrivacyMap(
            [[1e-3, 2e-3], [2e-3, 3e-3]], "500 m", (600000.5, 6800000.25), projected
        ),
        "73bab9b00862f299e6b3e26c7359cdaccf3edc7f16b8483da0fd28ed6704b4ac": PrivacyMap(
            [1e-3, 2e-3, 3e-3], "1 m", (-1.5, 0.0)
        ),
    }
    for digest, privacy_map in known.items():
        assert privacy_map.digest() == digest


@given(
    st.tuples(*[st.floats(1e-2, 1e6)] * 2),
    st.tuples(*[st.floats(-1e7, 1e7)] * 2),
    st.lists(st.floats(1e-9, 50.0), min_size=1, max_size=6),
)
def test_any_map_survives_json(cell, origin, nats):
    # Beyond 50 nats a cell they would be in another unit.
    levels = np.maximum(np.array(nats) / max(1.0, *cell), 1e-9)
    made = PrivacyMap([levels], cell, origin)
    again = PrivacyMap.from_json(as_text(made.to_json()), made.values)
    assert (again.digest(), again.to_json()) == (made.digest(), made.to_json())


def test_other_levels_cells_origins_and_planes_have_other_digests():
    region = Box(1.0, 48.0, 2.0, 49.0)
    base = PrivacyMap(LEVELS, "500 m")
    others = [
        PrivacyMap(LEVELS[::-1], "500 m"),
        PrivacyMap(LEVELS * (1 + 2.0**-50), "500 m"),
        PrivacyMap(LEVELS, "501 m"),
        PrivacyMap(LEVELS, "500 m", (0.0, 1.0)),
        PrivacyMap(LEVELS, "500 m", (-0.0, np.nextafter(0.0, 1.0))),
        PrivacyMap(LEVELS, "500 m", plane=Plane.projected("EPSG:2154", region)),
        PrivacyMap(LEVELS, "500 m", plane=Plane.projected("EPSG:32631", region)),
        PrivacyMap(LEVELS, "500 m", plane=Plane.projected("EPSG:2154", Box(1.0, 48.0, 2.0, 49.5))),
        PrivacyMap(LEVELS.reshape(3, 2), "500 m"),
        PrivacyMap(LEVELS.ravel(), "500 m"),
        PrivacyMap(LEVELS.reshape(1, 6), "500 m"),
    ]
    assert len({m.digest() for m in (base, *others)}) == len(others) + 1


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_with_units_and_boxes_are_plain_floats(kind):
    of = NUMBERS[kind]
    assert repr(Box(of(1), of(2), of(3), of(4))) == repr(Box(1.0, 2.0, 3.0, 4.0))
    assert repr(Raster(2, 3, (of(5), of(6)), (of(7), of(8)))) == repr(
        Raster(2, 3, (5.0, 6.0), (7.0, 8.0))
    )
    assert repr(Length(of(2))) == repr(Length(2.0))
    assert repr(Epsilon(of(2))) == repr(Epsilon(2.0))
    assert repr(Scaled(of(2), Euclidean())) == repr(Scaled(2.0, Euclidean()))
    made = Distinguishability((of(0), of(5)), (of(0), of(3)), (of(0), of(1)))
    pieces = (made.starts, made.levels, made.slopes)
    assert repr(pieces) == repr(((0.0, 5.0), (0.0, 3.0), (0.0, 1.0)))


@pytest.mark.parametrize("text", ["1", b"1", "1_1"])
def test_text_is_no_bound_and_no_length(text):
    for make in (
        lambda: Box(0, 0, text, 4),
        lambda: Length(text),
        lambda: Epsilon(text),
        lambda: Raster(2, 2, (text, 1.0)),
        lambda: Raster(text, 2),
        lambda: Raster(2.0, 2),  # type: ignore[arg-type]
        lambda: PrivacyMap([[text]], "1 m"),
        lambda: Points([[text, text]], Plane()),
        lambda: Points(np.array([[text, 1.0]], dtype=object), Plane()),
    ):
        with pytest.raises(InvalidInput):
            make()


SPACES = {
    "metres": (Plane(), [[0, 0], [300, 0], [0, 400]]),
    "projected": (
        Plane.projected("EPSG:2154", Box(np.int64(1), np.asarray(48), np.float32(2), 49)),
        [[600000, 6800000], [600300, 6800000], [600000, 6800400]],
    ),
    "globe": (Sphere(), [[2, 48], [3, 48], [2, 49]]),
    "line": (Line(), [[0], [300], [700]]),
}


@pytest.mark.parametrize("where", SPACES)
@pytest.mark.parametrize("kind", NUMBERS)
def test_a_channel_in_any_space_is_read_again(where, kind, tmp_path):
    space, places = SPACES[where]
    of = NUMBERS[kind]
    sites = Sites(Points([[of(x) for x in place] for place in places], space))
    plain = Sites(Points(np.asarray(places, float), space))
    level = Epsilon.per_metre(2e-3) if where != "globe" else Epsilon.per_metre(2e-5)
    built, expected = exponential_channel(sites, level), exponential_channel(plain, level)
    hashes = []
    for channel in (built, expected):
        path = tmp_path / "channel.npz"
        channel.save(path)
        read = Channel.load(path)
        assert read.space == channel.space
        assert read.guarantee.metric == channel.guarantee.metric
        assert read.guarantee.basis is channel.guarantee.basis  # its words are those of reading
        np.testing.assert_array_equal(read.weights, channel.weights)
        hashes.append(load_artefact(path).certificate["sha256"])
    assert hashes[0] == hashes[1]
    assert space_from_json(as_text(space_to_json(space))) == space


def test_the_facts_of_a_channel_may_be_numbers_of_any_type(tmp_path):
    raster = Raster(np.int64(1), 3, (np.float32(500), 500))
    channel = optimal_channel(raster, None, "1/km", dilation=Fraction(3, 2))
    facts = {"a": np.float32(0.5), "b": np.int64(3), "c": Fraction(1, 4), "d": np.arange(2)}
    saved = Channel(channel.secrets, channel.reports, channel.weights, channel.guarantee, facts)
    saved.save(tmp_path / "c.npz")
    assert Channel.load(tmp_path / "c.npz").details == {"a": 0.5, "b": 3, "c": 0.25, "d": [0, 1]}
    channel.save(tmp_path / "c.npz")
    assert Channel.load(tmp_path / "c.npz").details["dilation"] == 1.5
    strange = Channel(
        channel.secrets, channel.reports, channel.weights, channel.guarantee, {"a": object()}
    )
    with pytest.raises(InvalidInput, match="cannot be saved"):
        strange.save(tmp_path / "c.npz")


def _simple_metrics() -> st.SearchStrategy[Metric]:
    values = st.builds(
        lambda top, size: Records(Values("1/3", top), size), st.integers(1, 9), st.integers(1, 4)
    )
    heights = st.lists(st.floats(0, 50), min_size=1, max_size=4).map(sorted)
    bounds = st.lists(st.floats(-1e7, 1e7), min_size=2, max_size=2, unique=True).map(sorted)
    return st.one_of(
        st.sampled_from([Euclidean(), Manhattan(), Chebyshev(), GreatCircle(), Geodesic()]),
        st.integers(1, 3).flatmap(
            lambda n: st.just(Finite(np.where(np.eye(n), 0.0, np.arange(1.0, n + 1).sum() / 3)))
        ),
        st.just(Finite(np.where(np.eye(2), 0.0, np.inf))),
        values.map(lambda r: r.manhattan),
        values.map(lambda r: r.hamming),
        values.map(lambda r: r.maximum),
        values.map(lambda r: r.normalised_manhattan),
        heights.map(
            lambda levels: DistanceLevel(
                Distinguishability(
                    tuple(range(len(levels) + 1)),
                    (*levels, np.inf),
                    (0,) * (len(levels) + 1),
                )
            )
        ),
        st.builds(lambda x, y: DifferentPlaces(Box(x[0], y[0], x[1], y[1])), bounds, bounds),
    )


def metrics() -> st.SearchStrategy[Metric]:
    factors = st.floats(1e-6, 1e6)
    return st.recursive(
        _simple_metrics(),
        lambda inner: st.one_of(
            st.builds(Scaled, factors, inner),
            st.builds(Scaled, factors.map(np.float32), inner),
            st.builds(Scaled, st.fractions(Fraction(1, 99), 99), inner),
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: Sum.of(*parts)),
            st.builds(TupleSum, inner, st.integers(1, 5)),
            st.builds(TupleMax, inner, st.integers(1, 5)),
        ),
        max_leaves=4,
    )


@given(metrics(), st.sampled_from(list(Basis)), st.text(max_size=20), st.text(max_size=20))
def test_every_guarantee_is_the_one_read_from_its_json(metric, basis, source, numerics):
    made = Guarantee(metric, basis, source, numerics)
    again = Guarantee.from_json(as_text(made.to_json()))
    assert again == made
    assert hash(again.metric) == hash(made.metric)
    # The words of a metric are made anew from its numbers: reading once more changes nothing.
    twice = Guarantee.from_json(as_text(again.to_json()))
    assert json.dumps(twice.to_json()) == json.dumps(again.to_json())
