from __future__ import annotations

import numpy as np
import pytest

from whereish.errors import InvalidInput
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.privacy import Euclidean, TupleMax, TupleSum
from whereish.queries import report_centroid, report_each

PLACES = np.array([[0.0, 0.0], [900.0, 300.0], [300.0, 600.0], [50.0, 50.0]])
D_INF = TupleMax(Euclidean(), 4)


def test_independent_reports_keep_n_eps_on_the_maximum(rng):
    each = report_each(PlanarLaplace("0.01/m"), PLACES, rng=rng)
    assert len(each.points) == 4
    assert each.points.reproducible
    assert each.guarantee.metric.ratio_to(D_INF) == 4 * 0.01
    assert each.guarantee.implies(0.04 * D_INF)
    assert not each.guarantee.implies(0.0399 * D_INF)
    assert each.guarantee.implies(0.01 * TupleSum(Euclidean(), 4))


def test_n_eps_is_needed_when_all_places_move():
    """The joint density of the four reports changes by exactly n * eps * d_inf along a line."""
    mechanism = PlanarLaplace("0.01/m")
    moved = PLACES - np.array([10.0, 0.0])
    reports = PLACES + np.array([1000.0, 0.0])
    lost = (mechanism.log_density(reports, PLACES) - mechanism.log_density(reports, moved)).sum()
    assert lost == pytest.approx(4 * 0.01 * float(D_INF(PLACES, moved)))


def test_both_compose_about_the_same_tuple(rng):
    each = report_each(PlanarLaplace("0.01/m"), PLACES, rng=rng)
    centre = report_centroid(PLACES, "0.02/m", rng=rng)
    assert centre.guarantee.implies(0.02 * D_INF)
    both = each.guarantee + centre.guarantee
    assert both.metric.ratio_to(D_INF) == pytest.approx(4 * 0.01 + 0.02)
    assert both.level("50 m", D_INF) == pytest.approx(0.06 * 50)
    assert centre.guarantee.repeated(3).metric.ratio_to(D_INF) == pytest.approx(0.06)
    assert type(both).from_json(both.to_json()) == both


def test_one_centroid_is_closer_than_the_mean_of_independent_reports(rng):
    """For one promise on d_inf: mean of n reports at eps/n against one centroid at eps."""
    truth = PLACES.mean(axis=0)
    centre, mean = [], []
    for _ in range(300):
        centre.append(report_centroid(PLACES, "0.02/m", rng=rng).value)
        points = report_each(PlanarLaplace("0.005/m"), PLACES, rng=rng).points
        mean.append(points.coordinates.mean(axis=0))
    error = [np.hypot(*(np.array(values) - truth).T).mean() for values in (centre, mean)]
    assert error[0] < 0.8 * error[1]


def test_no_places_are_refused():
    with pytest.raises(InvalidInput, match="at least one"):
        report_each(PlanarLaplace("0.01/m"), np.empty((0, 2)))
    with pytest.raises(InvalidInput, match="tuples of 1 places; got 0"):
        report_centroid(np.empty((0, 2)), "0.01/m")
    with pytest.raises(InvalidInput, match=r"\(n, 2\)"):
        report_centroid(3.0, "0.01/m")
