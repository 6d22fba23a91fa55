"""What a report costs: one unit for every mechanism, whatever the secret."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import whereish as wh
from whereish.errors import BudgetExceeded, InvalidInput
from whereish.privacy.maps.geodesic import MapGeodesic
from whereish.publish.charging import charged_epsilon, level_in_true_metres

PLANE = wh.Plane.around(2.35, 48.85, "20 km")
LEVELS = np.array([[1, 1, 4], [1, 2, 4], [2, 4, 5]]) * 1e-3
BUILT = {
    kind: wh.EikonalMechanism.build(
        wh.PrivacyMap(LEVELS, "500 m", (-750.0, -750.0), PLANE), places=kind
    )
    for kind in ("continuous", "cells")
}


def test_a_map_costs_its_largest_level_which_its_metric_never_exceeds():
    """Against the metric itself, at 2,000 pairs of places; and no smaller level will do."""
    mechanism = BUILT["continuous"]
    assert charged_epsilon(mechanism).per_m == pytest.approx(5e-3, rel=1e-12)
    assert charged_epsilon(mechanism).per_m >= 5e-3
    draw = np.random.default_rng(1)
    x, y = draw.uniform(-900, 900, (2, 2_000, 2))
    metric, apart = mechanism.guarantee.metric(x, y), np.hypot(*(x - y).T)
    level = mechanism.guarantee.metric.ratio_to(wh.Euclidean())
    assert (metric <= level * apart * (1 + 1e-12)).all()
    close = np.array([[740.0, 740.0], [745.0, 745.0]])
    (least,) = mechanism.guarantee.metric(close[:1], close[1:]) / math.hypot(5, 5)
    assert least > 0.999 * level


def test_twice_a_map_costs_twice():
    twice = BUILT["continuous"].guarantee.repeated(2).metric
    once = BUILT["continuous"].guarantee.metric
    assert twice.ratio_to(wh.Euclidean()) == pytest.approx(2 * once.ratio_to(wh.Euclidean()))
    assert once.ratio_to(wh.Manhattan()) == once.ratio_to(wh.Euclidean())
    assert once.ratio_to(wh.GreatCircle()) == math.inf


def test_a_map_of_cells_has_no_level_since_places_on_a_border_touch():
    metric = BUILT["cells"].guarantee.metric
    assert isinstance(metric, MapGeodesic)
    across = metric(np.array([[-250.001, 0.0]]), np.array([[-249.999, 0.0]]))
    assert across > 100 * 5e-3 * 0.002
    assert level_in_true_metres(BUILT["cells"]) == math.inf
    with pytest.raises(InvalidInput, match="places='continuous'"):
        charged_epsilon(BUILT["cells"])


def test_a_release_by_a_map_is_charged_and_states_the_map(tmp_path):
    ledger = wh.open_ledger(tmp_path / "l.db", cap="0.01/m")
    frame = pd.DataFrame({"lon": [2.35, 2.351], "lat": [48.85, 48.851], "who": ["a", "a"]})
    frame.to_parquet(tmp_path / "in.parquet")
    plan = {"lon": "lon", "lat": "lat", "mechanism": BUILT["continuous"], "subject": "who"}
    released = wh.sanitize(tmp_path / "in.parquet", tmp_path / "a.parquet", **plan, ledger=ledger)
    assert released.guarantee.metric == BUILT["continuous"].guarantee.metric
    assert released.exposure.per_m == pytest.approx(0.01)
    assert ledger.statement("a").left_per_m == pytest.approx(0, abs=1e-14)
    with pytest.raises(BudgetExceeded):
        wh.sanitize(tmp_path / "in.parquet", tmp_path / "b.parquet", **plan, ledger=ledger)
