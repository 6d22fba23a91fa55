"""Guarantees about a set of places add up in the ledger, on the metric d_inf."""

from __future__ import annotations

import pytest

from whereish.errors import BudgetExceeded
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.privacy.tuples import maximum_of_places
from whereish.publish.ledger import open_ledger
from whereish.publish.ledger.ledger import Charge
from whereish.queries import report_centroid, report_each

PLACES = [[0.0, 0.0], [400.0, 300.0], [-250.0, 80.0]]


def test_reports_of_each_place_and_of_their_centroid(tmp_path):
    d_inf = maximum_of_places(3)
    each = report_each(PlanarLaplace("0.002/m"), PLACES).guarantee
    centre = report_centroid(PLACES, "0.004/m").guarantee
    spent = [guarantee.epsilon(d_inf) for guarantee in (each, centre)]
    assert [eps.per_m for eps in spent] == pytest.approx([0.006, 0.004])
    assert (each + centre).epsilon(d_inf).per_m == pytest.approx(0.010)
    ledger = open_ledger(tmp_path / "budget.sqlite", cap="0.01001/m")
    for epsilon in spent:
        ledger.charge([Charge("a family", epsilon)])
    with pytest.raises(BudgetExceeded):
        ledger.charge([Charge("a family", centre.epsilon(d_inf))])
