from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whereish.errors import InvalidInput
from whereish.space.values import NULL, Multiples, Values


@given(st.fractions("1/1000", 1000), st.integers(1, 5000), st.data())
def test_values_and_indices_are_inverse(step, top, data):
    values = Values(step, top, null=True)
    index = data.draw(st.lists(st.integers(-1, top), min_size=1, max_size=20))
    assert values.indices(values.at(index)).tolist() == index


def test_decimal_steps_are_read_as_people_write_them():
    tenths = Values(0.1, 10)
    assert tenths.step == Fraction(1, 10)
    assert tenths.indices([0.1 + 0.2, 1.0]).tolist() == [3, 10]


def test_null_is_none_or_nan():
    assert Values(1, 3, null=True).indices([None, 2, float("nan")]).tolist() == [NULL, 2, NULL]
    with pytest.raises(InvalidInput, match="missing"):
        Values(1, 3).indices([None, 2])


@pytest.mark.parametrize("outside", [-1, 4, 1.5, 1e300, float("inf"), -1e-3])
def test_values_outside_the_universe_are_refused_and_not_quoted(outside):
    with pytest.raises(InvalidInput, match=r"must be in \[0\.\.3\]; 1 of 2 are not") as error:
        Values(1, 3).indices([outside, 2])
    assert str(outside) not in str(error.value)


@pytest.mark.parametrize(
    ("step", "top"),
    [(0, 3), (-1, 3), (float("nan"), 3), ("a", 3), (float("inf"), 3), (1, 0), (1, 2.5), (1, True)],
)
def test_what_is_no_universe_is_refused(step, top):
    with pytest.raises(InvalidInput, match="universe must"):
        Values(step, top)


def test_text_is_refused_without_being_quoted():
    with pytest.raises(InvalidInput, match="must be numbers") as error:
        Values(1, 3).indices(["secret", "2"])
    assert "secret" not in str(error.value)


def test_multiples_have_no_end_but_a_lattice():
    lattice = Multiples("1/4")
    assert lattice.at(lattice.indices([-2.25, 1e6])).tolist() == [-2.25, 1e6]
    with pytest.raises(InvalidInput, match="multiples of 1/4"):
        lattice.indices([0.3])
    with pytest.raises(InvalidInput, match="greater than zero"):
        Multiples(0)


def test_json_round_trip():
    values = Values("1/3", 7, null=True)
    assert Values.from_json(values.to_json()) == values
    assert np.array_equal(values.all_indices(), [0, 1, 2, 3, 4, 5, 6, 7, NULL])


def test_large_indices_of_awkward_steps_are_read():
    values = Values("1/3", 10**9)
    index = np.array([10**9, 10**9 - 1, 123_456_789])
    assert values.indices(values.at(index)).tolist() == index.tolist()


@pytest.mark.parametrize("text", ["1_1", "1", "١"])
def test_text_is_no_value_and_only_decimals_are_steps(text):
    """Python and numpy read "1_1" as 11: an identifier must not become a number."""
    for data in ([text], np.array([text]), np.array([text, 1.0], object), text):
        with pytest.raises(InvalidInput, match="must be numbers"):
            Values(1, 20).indices(data)
    if text != "1":
        with pytest.raises(InvalidInput, match="finite number"):
            Values(text, 20)
    assert Values(1, 20, null=True).indices(np.array([None, 1], object)).tolist() == [-1, 1]
    assert Values(1, 20).indices(3).shape == ()
