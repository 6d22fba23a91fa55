from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whereish.errors import InvalidInput
from whereish.privacy import Records
from whereish.queries import Average, Count, Maximum, Median, Minimum, Percentile, Sum
from whereish.space.values import Values

RECORDS = Records(Values("1/2", 8, null=True), 6)
entries = st.lists(st.one_of(st.none(), st.integers(0, 8)), min_size=6, max_size=6)


@given(entries)
def test_answers_are_the_definitions(drawn):
    data = [None if i is None else i / 2 for i in drawn]
    present = sorted(value for value in data if value is not None)
    assert Sum()(data, RECORDS) == sum(present)
    assert Count()(data, RECORDS) == len(present)
    assert Count(lambda value: value > 2)(data, RECORDS) == sum(value > 2 for value in present)
    if not present:
        for query in (Minimum(), Median(), Maximum(), Percentile(10), Average()):
            assert query(data, RECORDS) == 0
        return
    assert Minimum()(data, RECORDS) == Percentile(0)(data, RECORDS) == present[0]
    assert Maximum()(data, RECORDS) == present[-1]
    assert Maximum()(data, RECORDS) == Percentile(Fraction(500, 6))(data, RECORDS)
    assert Median()(data, RECORDS) == Percentile(50)(data, RECORDS) == present[len(present) // 2]
    mean = Fraction(sum(present)) / len(present)
    assert Average()(data, RECORDS) == math.floor(mean * 2 + Fraction(1, 2)) / 2
    assert Average(60)(data, RECORDS) == pytest.approx(float(mean))


def test_many_databases_at_once():
    data = RECORDS.indices(np.array([[0, 1, 2, 3, 4, 4], [4, 4, 4, 4, 4, None]], dtype=object))
    assert Sum().on_indices(data, RECORDS).tolist() == [28, 40]
    assert Median().on_indices(data, RECORDS).tolist() == [6, 8]


@pytest.mark.parametrize("p", [-0.1, 100, 100.5, float("nan"), float("inf"), "half"])
def test_p_outside_its_range_is_refused(p):
    with pytest.raises(InvalidInput, match="p must be"):
        Percentile(p)


@pytest.mark.parametrize("refinement", [0, -1, 1.5, True])
def test_a_refinement_is_a_whole_number(refinement):
    with pytest.raises(InvalidInput, match="refinement"):
        Average(refinement)


def test_counts_that_are_known_beforehand_are_refused():
    full = Records(Values(1, 3), 2)
    for query in (Count(), Count(lambda value: value >= 0), Count(lambda value: value > 3)):
        with pytest.raises(InvalidInput, match="some values"):
            query.sensitivity(full.hamming)
