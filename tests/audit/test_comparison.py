"""Mechanisms side by side, and pictures of all that has one."""

from __future__ import annotations

import json

import numpy as np
import pytest

import whereish as wh
from whereish.audit.pictures.maps import chosen_places
from whereish.errors import InvalidInput

SITES = np.array([[x, y] for x in (0.0, 900.0, 1800.0) for y in (0.0, 900.0)])
PRIOR = [0.4, 0.2, 0.1, 0.1, 0.1, 0.1]


@pytest.fixture(scope="module")
def found():
    return wh.compare(SITES, PRIOR, epsilons=["0.5/km", "2/km"], zone="1 km")


def test_the_optimum_is_the_best_that_keeps_epsilon(found):
    for level in (0.0005, 0.002):
        at = [line for line in found if line.epsilon_per_m == level]
        (best,) = [line for line in at if line.mechanism == "optimal"]
        for line in at:
            if line.keeps_epsilon:
                assert best.quality_loss_m <= line.quality_loss_m * (1 + 1e-3)
            # No guess of the adversary's is worse than the report itself.
            assert line.adversary_error_m <= line.quality_loss_m * (1 + 1e-9)
    losses = [line.quality_loss_m for line in found if line.mechanism == "optimal"]
    assert losses[1] < losses[0]
    (truth,) = [line for line in found if line.mechanism == "identity"]
    assert (truth.quality_loss_m, truth.identification) == (0.0, 1.0)


def test_a_comparison_as_a_table_a_frame_latex_and_json(found):
    assert max(map(len, str(found).splitlines())) <= 79
    assert len(str(found).splitlines()) >= len(found) + 1
    frame = found.to_frame()
    assert len(frame) == len(found)
    assert frame.columns.tolist()[:2] == ["mechanism", "epsilon_per_m"]
    assert json.loads(json.dumps(found.to_json()))["lines"][0]["mechanism"] == "optimal"
    latex = found.to_latex()
    assert latex.count(r"\\") == len(found) + 1
    assert "%" not in latex.replace(r"\%", "")
    assert len(repr(found)) <= 300


def test_sites_in_degrees_have_planar_laplace_too():
    places = wh.Sphere().from_degrees([2.35, 2.36, 2.37], [48.85, 48.86, 48.85])
    told = []
    found = wh.compare(
        wh.Sites(places),
        None,
        epsilons=["1/km"],
        mechanisms=["planar Laplace", "exponential"],
        progress=lambda *words: told.append(words),
    )
    assert [line.mechanism for line in found] == ["planar Laplace", "exponential"]
    assert found.left_out == ()
    assert told == [("planar Laplace", 0, 2), ("exponential", 1, 2)]
    # The same triangle in metres of a plane, to the plane's own accuracy.
    plane = wh.Plane.around(2.36, 48.855, "5 km")
    flat = wh.Sites(plane.from_degrees(*places.coordinates.T))
    (there,) = wh.compare(flat, None, epsilons=["1/km"], mechanisms=["planar Laplace"])
    assert there.quality_loss_m == pytest.approx(found.lines[0].quality_loss_m, rel=2e-3)


def test_mechanisms_of_ones_own_and_what_is_left_out():
    own = {"mine": lambda sites, prior, eps: wh.exponential_channel(sites, eps)}
    (line,) = wh.compare(SITES, PRIOR, epsilons=["1/km"], mechanisms=own)
    (theirs,) = wh.compare(SITES, PRIOR, epsilons=["1/km"], mechanisms=["exponential"])
    assert line.quality_loss_m == theirs.quality_loss_m
    found = wh.compare(SITES, PRIOR, epsilons=["1/km"], mechanisms=["cloaking", "uniform"])
    assert [line.mechanism for line in found] == ["uniform"]
    assert "zone" in found.left_out[0]


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"epsilons": []}, "list of levels"),
        ({"epsilons": ["1/km"], "mechanisms": ["best"]}, "must be some of optimal"),
        ({"epsilons": ["1/km"], "mechanisms": "optimal"}, "list of names"),
    ],
)
def test_questions_that_make_no_sense(how, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        wh.compare(SITES, PRIOR, **how)


def drawable():
    levels = 1e-3 * (1 + np.add.outer(np.arange(6), np.arange(7)) / 5)
    mechanism = wh.EikonalMechanism.build(wh.PrivacyMap(levels, "500 m"), places="cells")
    walk = [[2.35 + 0.001 * i, 48.85] for i in range(12)]
    trace = wh.PredictiveMechanism(wh.FixedUtility("300 m")).report(
        walk, times_s=[60.0 * i for i in range(12)], rng=wh.SeededRandomness(1)
    )
    noise = wh.CircularNoise(([0, 100, 200], [4, 2, 1]), resolution="10 m")
    return {
        "map": mechanism,
        "channel": wh.tight_channel(SITES, "2/km"),
        "globe": wh.GlobeLaplace("1/km"),
        "radial": noise,
        "trace": trace,
    }


THINGS = drawable()


@pytest.mark.parametrize("name", THINGS)
@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_every_picture_in_every_format_is_the_same_twice(tmp_path, name, ending):
    pytest.importorskip("matplotlib")
    paths = [tmp_path / f"{i}.{ending}" for i in range(2)]
    figures = [wh.plot(THINGS[name], path) for path in paths]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert paths[0].stat().st_size > 5000
    axes = [one for one in figures[0].axes if one.get_label() != "<colorbar>"]
    assert figures[0].get_suptitle()
    for one in axes:
        assert one.get_xlabel()
        assert one.get_ylabel()


def test_the_places_of_a_maps_picture_differ():
    mechanism = THINGS["map"]
    cells = list(chosen_places(mechanism).values())
    levels = mechanism.map.values.ravel()[cells]
    assert len(set(cells)) == 3
    assert levels[0] < levels[1] < levels[2]


def test_a_small_zone_is_a_high_level_of_the_picture():
    levels = np.full((12, 12), 1.0)
    levels[7, 3] = 2.0  # one cell of 144: no twentieth of the ranks
    mechanism = wh.EikonalMechanism.build(wh.PrivacyMap(levels, (0.5, 0.5)), places="cells")
    assert chosen_places(mechanism)["C, high level"] == 7 * 12 + 3


def test_what_has_no_picture_is_refused(tmp_path, found):
    with pytest.raises(InvalidInput, match="there are pictures of"):
        wh.plot(5)
    with pytest.raises(InvalidInput, match=r"\.png, \.svg, \.pdf"):
        found.plot(tmp_path / "x.bmp")
