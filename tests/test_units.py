from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whereish.errors import InvalidInput, UnitError
from whereish.units import METRES_PER, Epsilon, Length


@pytest.mark.parametrize(
    ("text", "metres"),
    [("200 m", 200), ("1.5km", 1500), ("2 mi", 3218.688), (" 3 ft ", 0.9144), ("1e3 m", 1000)],
)
def test_lengths_are_read_with_their_unit(text, metres):
    assert Length.of(text).m == pytest.approx(metres, rel=1e-15)


def test_units_are_those_of_the_treaties():
    """International foot (1959) and its multiples; nautical mile (Monaco, 1929)."""
    foot = 0.3048
    yard, mile = 3 * foot, 5280 * foot
    wanted = {"mm": 0.001, "cm": 0.01, "m": 1, "km": 1000, "ft": foot, "yd": yard, "mi": mile}
    assert wanted | {"nmi": 1852} == pytest.approx(METRES_PER, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "per_m"),
    [
        ("ln(4)/200 m", math.log(4) / 200),
        ("1.07/km", 1.07e-3),
        ("0.01/m", 0.01),
        ("1/200 m", 0.005),
        ("ln(2) / 1 mi", math.log(2) / 1609.344),
        ("log(4)/200m", math.log(4) / 200),
    ],
)
def test_epsilons_are_read_with_their_unit(text, per_m):
    assert Epsilon.of(text).per_m == pytest.approx(per_m, rel=1e-15)


@pytest.mark.parametrize("bad", ["0.01", "", "0.01 m", "/m", "1/furlong", "nan/m", "inf/m", "1/0"])
def test_an_epsilon_without_a_length_is_refused(bad):
    with pytest.raises(UnitError, match="level per length"):
        Epsilon.of(bad)


@pytest.mark.parametrize("bad", ["0/m", "-1/m", "ln(1)/m", "ln(0)/m", "ln(-2)/m", "1/0 m"])
def test_an_epsilon_of_zero_or_less_is_refused(bad):
    with pytest.raises(InvalidInput, match=r"greater than zero|> 0"):
        Epsilon.of(bad)


@pytest.mark.parametrize("absurd", ["1001/m", "1e-10/m", "1e9/km"])
def test_an_absurd_epsilon_is_taken_for_a_wrong_unit(absurd):
    with pytest.raises(InvalidInput, match="is the unit right"):
        Epsilon.of(absurd)


@pytest.mark.parametrize("bare", [0.01, 5, math.nan])
def test_a_bare_number_is_refused_with_the_cure(bare):
    with pytest.raises(UnitError, match="per_metre"):
        Epsilon.of(bare)
    with pytest.raises(UnitError, match="metres"):
        Length.of(bare)


@pytest.mark.parametrize("nothing", [None, True, b"1 m", [1]])
def test_what_is_no_number_gets_no_advice_to_write_it_as_one(nothing):
    for read in (Epsilon.of, Length.of):
        with pytest.raises(UnitError, match=f"got {type(nothing).__name__}$") as caught:
            read(nothing)
        assert "None" not in str(caught.value).replace("NoneType", "")


@pytest.mark.parametrize(
    ("text", "metres"),
    [
        ("1 metre", 1.0),
        ("300 metres", 300.0),
        ("300 meter", 300.0),
        ("2 kilometers", 2000.0),
        ("1 mile", 1609.344),
        ("0.5 miles", 804.672),
        ("1 foot", 0.3048),
        ("10 feet", 3.048),
        ("2 yards", 1.8288),
    ],
)
def test_units_may_be_written_out(text, metres):
    assert Length.of(text).m == pytest.approx(metres, rel=1e-15)
    assert Epsilon.of(f"1/{text}").per_m == pytest.approx(1 / metres, rel=1e-15)


def test_an_unknown_unit_is_answered_by_the_list():
    with pytest.raises(UnitError, match=r"m, km, ft, yd, mi, nmi \(or metres"):
        Length.of("300 furlongs")
    with pytest.raises(UnitError, match="miles"):
        Epsilon.of("1/furlong")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_not_finite_is_refused(value):
    with pytest.raises(InvalidInput, match="finite"):
        Epsilon.per_metre(value)
    with pytest.raises(InvalidInput, match="finite"):
        Length.metres(value)


def test_level_at_radius_is_the_definition():
    assert Epsilon.at(math.log(4), "200 m") == Epsilon.of("ln(4)/200 m")


@given(st.floats(1e-3, 1e6), st.sampled_from(sorted(METRES_PER)))
def test_the_unit_only_changes_the_scale(value, unit):
    assert Length.of(f"{value!r} {unit}").m == pytest.approx(value * METRES_PER[unit], rel=1e-15)


@given(st.floats(1e-8, 1e2))
def test_text_round_trip(per_m):
    assert Epsilon.of(f"{per_m!r}/m").per_m == per_m
    assert Epsilon.of(str(Epsilon(per_m))).per_m == pytest.approx(per_m, rel=1e-5)
