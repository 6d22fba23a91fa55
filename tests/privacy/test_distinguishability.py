from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whereish.errors import InvalidInput
from whereish.privacy.distinguishability import DistanceLevel, Distinguishability
from whereish.privacy.metric import Metric
from whereish.privacy.norms import Euclidean, Manhattan

EPS = "1/km"
LINEAR = Distinguishability.linear(EPS)
LOCATION = Distinguishability.location("1 km", 0.5)
CAPPED = Distinguishability.capped(EPS, 2.0)
STAIRS = Distinguishability.stairs("1 km", 0.5, base=0.25)
ROOT = Distinguishability.square_root(1.0, "1 km")
FAMILIES = [LINEAR, LOCATION, CAPPED, STAIRS, ROOT, LINEAR.restricted("3 km")]


def test_values_of_the_families():
    d = np.array([0.0, 500.0, 1000.0, 1000.5, 5000.0])
    np.testing.assert_allclose(LINEAR(d), d / 1000)
    assert LOCATION(d).tolist() == [0, 0.5, 0.5, math.inf, math.inf]
    np.testing.assert_allclose(CAPPED(d), np.minimum(d / 1000, 2))
    np.testing.assert_allclose(STAIRS(d), [0, 0.75, 0.75, 1.25, 2.75])
    np.testing.assert_allclose(ROOT(d), np.sqrt(d / 1000), rtol=2e-5)
    assert (ROOT(d) <= np.sqrt(d / 1000)).all()
    assert LINEAR.restricted("3 km")([3000.0, 3001.0]).tolist() == [3.0, math.inf]
    assert Distinguishability.unlimited()([0.0, 1.0]).tolist() == [0.0, math.inf]


def test_at_a_jump_the_lower_value_counts_and_the_limit_is_there_too():
    assert LOCATION(1000.0) == 0.5
    assert LOCATION.after(1000.0) == math.inf
    assert LOCATION.after(0.0) == 0.5
    assert STAIRS.after(1000.0) == 1.25


def test_a_table_interpolates_and_says_what_is_beyond():
    def table(beyond):
        return Distinguishability.table([0, 1000, 2000], [0.1, 1, 3], beyond=beyond)

    np.testing.assert_allclose(table("constant")([500.0, 1500.0, 9000.0]), [0.55, 2.0, 3.0])
    assert table("linear")(3000.0) == pytest.approx(5.0)
    assert table("unlimited")(2000.1) == math.inf


@pytest.mark.parametrize(
    ("shape", "function"),
    [
        ("concave", lambda d: math.log1p(d / 100)),
        ("convex", lambda d: (d / 1000) ** 2),
        ("monotone", lambda d: 1.0 + math.floor(d / 700)),
    ],
)
def test_a_callable_is_bounded_from_below(shape, function):
    found = Distinguishability.of(function, reach="10 km", shape=shape)
    d = np.geomspace(0.01, 9990, 4001)
    exact = np.array([function(float(x)) for x in d])
    assert (found(d) <= exact).all()
    near = d > 1  # the first node is at 1 mm
    slack = {"concave": 1e-3, "convex": 1e-2, "monotone": 0.021}[shape]
    if shape == "monotone":  # right but for one node's width after a jump
        assert np.mean(found(d)[near] < exact[near] - 1e-9) < slack * 10
    else:
        assert (found(d)[near] >= exact[near] * (1 - slack)).all()


def test_regular_where_the_triangle_inequality_holds():
    for function in (LINEAR, CAPPED, ROOT, STAIRS, Distinguishability.unlimited()):
        assert function.is_regular(), function
        assert function.is_regular().witness is None


@pytest.mark.parametrize(
    "function",
    [
        LOCATION,
        LINEAR.restricted("3 km"),
        Distinguishability.table([0, 1000, 2000], [0, 1, 3], beyond="linear"),
        Distinguishability.of(lambda d: (d / 1000) ** 2, reach="5 km", shape="convex"),
    ],
)
def test_irregular_with_a_witness(function):
    check = function.is_regular()
    assert not check
    a, b = check.witness
    assert function(a + b) > function(a) + function(b)


def test_extension_to_the_plane():
    assert LINEAR.extends_to_plane("2 km")
    assert LOCATION.extends_to_plane("1 km")
    assert LINEAR.restricted("3 km").extends_to_plane("3 km")
    for function in (CAPPED, ROOT, STAIRS):
        check = function.extends_to_plane("2 km")
        assert not check
        (d,) = check.witness
        assert function(2000 + d) < function(2000) + function(d)


def test_decay_is_the_steepest_line_below():
    assert LINEAR.decay == 1e-3
    assert LOCATION.decay == 0.5e-3
    assert CAPPED.decay == 0.0
    assert LINEAR.restricted("3 km").decay == pytest.approx(1e-3)
    assert Distinguishability.unlimited().decay == math.inf


def test_the_metric_of_a_linear_function_is_geo_indistinguishability():
    assert LINEAR.metric == 1e-3 * Euclidean()


def test_metrics_compare_and_travel():
    d = LOCATION.metric
    assert isinstance(d, DistanceLevel)
    x, y = np.array([[0.0, 0.0]]), np.array([[600.0, 800.0]])
    assert d(x, y)[0] == 0.5
    assert Metric.from_json(d.to_json()) == d
    assert d <= LOCATION.scaled(1.1).metric
    assert not d <= LOCATION.scaled(0.9).metric
    assert STAIRS.metric.ratio_to(Euclidean()) == math.inf  # a jump at 0
    assert CAPPED.metric.ratio_to(Euclidean()) == pytest.approx(1e-3)
    assert CAPPED.metric.ratio_to(Manhattan()) == math.inf
    assert CAPPED.metric <= Distinguishability.capped("1.01/km", 2.0).metric


@given(
    st.lists(st.tuples(st.floats(1, 1e4), st.floats(0, 5)), min_size=1, max_size=5),
    st.floats(1, 2e4),
    st.floats(1, 2e4),
)
def test_checks_agree_with_points(steps, a, b):
    d = np.concatenate([[0.0], np.cumsum([s for s, _ in steps])])
    level = np.concatenate([[0.0], np.cumsum([r for _, r in steps])])
    function = Distinguishability.table(d, level, beyond="linear")
    if function.is_regular():
        assert function(a + b) <= (function(a) + function(b)) * (1 + 1e-9)
    if function.extends_to_plane(f"{a!r} m"):
        assert function(a + b) >= (function(a) + function(b)) * (1 - 1e-9)


def test_dilation_is_the_function_of_a_shrunk_distance():
    wide = LOCATION.dilated(1.01)
    assert wide(1009.0) == 0.5
    assert wide(1010.1) == math.inf
    assert LINEAR.dilated(2.0)(1000.0) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Distinguishability.of(lambda d: -d, reach="1 km", shape="monotone"), ">= 0"),
        (lambda: Distinguishability.of(lambda d: math.nan, reach="1 km", shape="concave"), "NaN"),
        (
            lambda: Distinguishability.of(lambda d: 1 / (1 + d), reach="1 km", shape="concave"),
            "must not decrease",
        ),
        (lambda: Distinguishability.table([0, 1, 2], [0, 2, 1]), "falls after 1 m"),
        (lambda: Distinguishability.table([0, 1], [0, math.nan]), "NaN"),
        (lambda: Distinguishability.table([0, 1], [-1, 2]), ">= 0"),
        (lambda: Distinguishability.table([0, 1], [0, math.inf]), "finite"),
        (lambda: Distinguishability.table([1, 2], [0, 1]), "first distance 0"),
        (lambda: Distinguishability.location("1 km", -1.0), "> 0"),
        (lambda: Distinguishability.location("1 km", math.nan), "> 0"),
        (lambda: LINEAR.scaled(0.0), "> 0"),
        (
            lambda: Distinguishability.of(lambda d: d * d, reach="1 km", shape="concave"),
            "declared concave",
        ),
        (
            lambda: Distinguishability.of(math.sqrt, reach="1 km", shape="convex"),
            "declared convex",
        ),
        (lambda: LINEAR(-1.0), "distances"),
    ],
)
def test_what_is_no_distinguishability_function_says_why(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


def test_dilating_short_pieces_far_out_never_fails():
    random = np.random.default_rng(4)
    for _ in range(3000):
        starts = np.r_[0.0, np.sort(random.uniform(0, 5000, 4))]
        starts[2] = starts[1] * (1 + random.choice([1e-13, 1e-9, 1e-3]))
        if (np.diff(starts) <= 0).any():
            continue
        slopes = random.uniform(0, 1e-3, 5)
        levels = np.r_[0.0, np.cumsum(slopes[:-1] * np.diff(starts))]
        whole = Distinguishability(tuple(starts), tuple(levels), tuple(slopes))
        factor = random.uniform(1.0, 2.0)
        d = random.uniform(0, 8000, 20)
        assert (whole.dilated(factor)(d * factor) <= whole(d) * (1 + 1e-12)).all()


def test_dilation_promises_no_more_to_the_last_bit():
    """Pieces start no earlier and rise no faster than those of l(d / factor)."""
    for factor in np.random.default_rng(5).uniform(1.0, 2.0, 200).tolist():
        exact = Fraction(factor)
        wide = STAIRS.dilated(factor)
        for new, old in zip(wide.starts, STAIRS.starts, strict=True):
            assert Fraction(new) >= Fraction(old) * exact
        slope = Distinguishability.linear("1/km").dilated(factor).slopes[0]
        assert Fraction(slope) * exact <= Fraction(1e-3)
        assert slope > 1e-3 / factor * (1 - 1e-14)


def test_irregular_only_just_after_a_jump():
    """At every corner the triangle inequality holds; beside one of them it does not."""
    function = Distinguishability((0.0, 1000.0), (0.1, 0.8), (4e-4, 0.0))
    check = function.is_regular()
    assert not check
    a, b = check.witness
    assert function(a + b) > function(a) + function(b)


def test_no_extension_only_just_after_a_jump():
    function = Distinguishability((0.0, 500.0), (0.0, 0.9), (1e-3, 1e-3))
    assert function(1500.0) == pytest.approx(float(function(1000.0) + function(500.0)))
    check = function.extends_to_plane("1 km")
    assert not check
    (d,) = check.witness
    assert function(1000.0 + d) < function(1000.0) + function(d)
