import numpy as np
import pytest

import whereish as wh
from instances import EPSILON, distances, peaked
from whereish.errors import InvalidInput
from whereish.solvers.channels.rows import TOTAL
from whereish.solvers.optimal.programme import ChannelProgramme
from whereish.solvers.optimal.reference import solve_reference
from whereish.solvers.optimal.spanner import shortest_path_closure

GRID = np.stack(np.meshgrid(np.arange(4.0), np.arange(4.0)), axis=-1).reshape(-1, 2) * 500


@pytest.fixture(scope="module")
def fifty():
    places, prior = peaked(12, 12, keep=50)
    return places, prior, wh.optimal_channel(places, prior, EPSILON, gap=1e-6)


def test_bounds_rows_and_privacy(fifty):
    places, _, channel = fifty
    assert channel.status == "optimal"
    assert 0 <= channel.gap <= 1.1e-6
    assert all(sum(row) == TOTAL for row in channel.weights.tolist())
    metric = wh.Epsilon.of(EPSILON) * wh.Euclidean()
    assert wh.audit.exact(channel, metric, sites=places).holds
    assert wh.audit.exact(channel, 0.99 * metric, sites=places).refuted


def test_adversary_error_is_the_loss(fifty):
    """Theorem 6.2 of Bordenabe's thesis: for optimal channels AdvError = QL."""
    _, prior, channel = fifty
    loss = wh.quality_loss(channel, prior)
    assert loss == pytest.approx(channel.loss, rel=1e-12)
    assert wh.adversary_error(channel, prior) == pytest.approx(loss, rel=1e-9)


def test_nothing_private_does_better(fifty):
    places, prior, channel = fifty
    others = [wh.exponential_channel(places, EPSILON)]
    others.append(others[0] >> wh.BayesianRemap(prior))
    for other in others:
        assert channel.lower_bound <= wh.quality_loss(other, prior)
    spanner = wh.optimal_channel(places, prior, EPSILON, dilation=1.05, gap=1e-5)
    assert channel.loss <= spanner.loss <= 1.05 * channel.loss
    assert spanner.dilation == 1.05


def test_reports_follow_the_matrix(fifty, rng):
    places, _, channel = fifty
    reports = channel.report(np.repeat(places[:1], 200_000, axis=0), rng=rng)
    assert reports.reproducible
    columns = channel.reports.nearest(reports.coordinates)
    shares = np.bincount(columns, minlength=len(channel.reports)) / 200_000
    np.testing.assert_allclose(shares, channel.matrix[0], atol=0.005)


def test_squared_loss_and_other_metrics():
    squared = wh.optimal_channel(GRID, None, "1/km", loss="squared", gap=1e-6)
    by_function = wh.optimal_channel(
        GRID, None, "1/km", loss=lambda x, z: ((x - z) ** 2).sum(axis=-1), gap=1e-6
    )
    assert squared.loss == pytest.approx(by_function.loss, rel=3e-6)
    plain = wh.optimal_channel(GRID, None, "1/km", gap=1e-6)
    manhattan = wh.optimal_channel(GRID, None, "1/km", metric=wh.Manhattan(), gap=1e-6)
    assert manhattan.loss < plain.loss, "a larger metric asks for less"
    matrix = wh.optimal_channel(GRID, None, "1/km", metric=distances(GRID), gap=1e-6)
    assert matrix.loss == pytest.approx(plain.loss, rel=3e-6)
    nats = wh.optimal_channel(GRID, None, None, metric=1e-3 * distances(GRID), gap=1e-6)
    assert nats.loss == pytest.approx(plain.loss, rel=3e-6)


def test_a_sum_of_matrices_is_a_matrix():
    apart = 1e-3 * distances(GRID)
    other = 2.0 * (1 - np.eye(len(GRID)))
    both = wh.Finite(apart) + wh.Finite(other)
    summed = wh.exponential_channel(GRID, None, metric=both)
    whole = wh.exponential_channel(GRID, None, metric=apart + other)
    np.testing.assert_array_equal(summed.weights, whole.weights)


def test_degrees_on_the_globe():
    sites = wh.Points(np.c_[np.linspace(2.30, 2.36, 6), np.linspace(48.84, 48.88, 6)], wh.Sphere())
    channel = wh.optimal_channel(sites, None, EPSILON)
    assert isinstance(channel.guarantee.metric.base, wh.GreatCircle)
    assert channel.guarantee.implies(wh.Epsilon.of(EPSILON) * wh.Geodesic())
    channel.verify()


def test_the_projection_is_charged():
    plane = wh.Plane.projected("EPSG:2154", wh.Box(2.2, 48.8, 2.5, 48.9))
    sites = wh.Points(GRID + np.array([652000, 6862000]), plane)
    metric = wh.optimal_channel(sites, None, "1/km").guarantee.metric
    assert metric.factor <= 1e-3 / plane.scale


def test_a_function_of_the_distance_holds_in_true_metres():
    """Web-Mercator metres at Paris are 1.5 to a true one: l must be read at d / 1.5."""
    plane = wh.Plane.projected("EPSG:3857", wh.Box(2.2, 48.8, 2.5, 48.9))
    degrees = np.c_[np.tile(np.linspace(2.30, 2.34, 4), 3), np.repeat([48.83, 48.85, 48.87], 4)]
    sites = plane.from_degrees(degrees[:, 0], degrees[:, 1])
    level = wh.Distinguishability.capped("1/km", 2.0)
    true = level(wh.Geodesic().matrix(degrees))

    def excess(channel):
        log = np.log(channel.matrix)
        return (log[:, None] - log[None] - true[..., None]).max()

    assert excess(wh.optimal_channel(sites, None, None, metric=level.metric)) <= 1e-12
    on_the_plane = level.metric.matrix(sites.coordinates)
    np.fill_diagonal(on_the_plane, 0.0)
    assert excess(wh.optimal_channel(sites, None, None, metric=on_the_plane)) > 0.1


@pytest.mark.parametrize(
    "places",
    [
        np.vstack([GRID, GRID[:3]]),
        np.zeros((5, 2)),
        np.array([[1.0, 2.0]]),
        np.vstack([GRID, GRID[0] + [1e-3, 0]]),
        np.vstack([GRID, GRID[0] + [1e-9, 0]]),
    ],
    ids=["duplicates", "all the same", "one place", "a millimetre apart", "a nanometre apart"],
)
def test_coinciding_places(places):
    channel = wh.optimal_channel(places, None, "1/km")
    assert channel.gap <= 1.1e-4
    assert channel.verify().upper <= 1
    same = distances(places) == 0
    rows = channel.weights[:, None] == channel.weights[None]
    assert rows.all(axis=2)[same].all()


@pytest.mark.parametrize(
    ("places", "metric", "times"),
    [
        (GRID, None, 0),  # metres keep the triangle inequality
        (np.vstack([GRID, GRID[:3]]), None, 1),
        (GRID, 1e-3 * np.hypot(*np.moveaxis(GRID[:, None] - GRID, -1, 0)), 1),
    ],
    ids=["metres", "doubles", "matrix"],
)
def test_the_metric_is_closed_at_most_once(places, metric, times, monkeypatch):
    calls = []

    def counted(lengths):
        calls.append(1)
        return shortest_path_closure(lengths)

    for module in ("mechanisms.channels.optimal", "solvers.optimal.solve"):
        monkeypatch.setattr(f"whereish.{module}.shortest_path_closure", counted)
    channel = wh.optimal_channel(places, None, "1/km" if metric is None else None, metric=metric)
    assert channel.gap <= 1.1e-4
    assert len(calls) == times


@pytest.mark.parametrize("level", ["1e-5/km", "1e-2/km", "20/km"])
def test_extreme_levels_still_solve(level):
    channel = wh.optimal_channel(GRID, None, level)
    assert channel.status == "optimal"
    assert channel.gap <= 1.1e-4


@pytest.mark.parametrize("level", ["200/km", "900/m"])
def test_levels_beyond_62_bits_report_the_truth(level):
    channel = wh.optimal_channel(GRID, None, level)
    assert channel.loss < 1e-9
    np.testing.assert_allclose(channel.matrix.max(axis=1), 1, atol=1e-12)
    channel.verify()


def test_small_epsilon_makes_all_rows_alike():
    channel = wh.optimal_channel(GRID, None, "1e-5/km")
    uninformed = distances(GRID).mean(axis=0).min()
    assert channel.loss == pytest.approx(uninformed, rel=1e-3)


def test_zero_probability_places():
    prior = np.zeros(16)
    prior[[3, 9]] = 0.5
    channel = wh.optimal_channel(GRID, prior, "1/km", gap=1e-6)
    d = distances(GRID)
    programme = ChannelProgramme((prior[:, None] * d).T, 1e-3 * d)
    reference = programme.value(solve_reference(programme))
    assert channel.loss == pytest.approx(reference, rel=2e-6)
    # Places that nobody visits still constrain: more is lost than between the two alone.
    assert channel.loss > 1.1 * d[3, 9] / (1 + np.exp(1e-3 * d[3, 9]))
    certain = np.eye(16)[3]
    assert wh.optimal_channel(GRID, certain, "1/km").loss < 1e-6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prior": np.full(16, 1.0)}, "sum to 1"),
        ({"prior": np.r_[1.5, -0.5, np.zeros(14)]}, ">= 0"),
        ({"prior": np.full(4, 0.25)}, "one entry per site"),
        ({"sites": np.zeros((0, 2))}, "at least one site"),
        ({"epsilon": None}, "privacy level"),
        ({"loss": "taxi"}, "loss must be"),
        ({"loss": -np.ones((16, 16))}, ">= 0"),
        ({"gap": 0.0}, "gap"),
        ({"dilation": 0.5}, "dilation must be"),
    ],
)
def test_bad_input_is_told(change, message):
    arguments = {"sites": GRID, "prior": None, "epsilon": "1/km", **change}
    with pytest.raises(InvalidInput, match=message):
        wh.optimal_channel(**arguments)


def test_time_limit_gives_an_honest_gap():
    channel = wh.optimal_channel(*peaked(7, 7), EPSILON, gap=1e-9, time_limit=0.0)
    assert channel.status == "time limit"
    assert channel.gap > 1e-3
    channel.verify()


def test_sites_beyond_the_declared_region_are_refused():
    far_north = np.array([[0.0, 9e6], [1000.0, 9e6], [0.0, 9.001e6]])
    plane = wh.Plane("EPSG:3857", wh.Box(0, 0, 1, 1))
    with pytest.raises(InvalidInput, match="declared region"):
        wh.optimal_channel(wh.Points(far_north, plane), None, "1/km")


def test_a_certificate_allows_for_the_errors_of_its_metric():
    places = np.array([2.0, 48.0]) + np.array([[0, 0], [1, 0], [0, 1], [1, 1]]) * 1e-5
    sites = wh.Points(places, wh.Sphere())
    channel = wh.optimal_channel(sites, None, "2/m", metric=wh.Geodesic(), gap=1e-3)
    assert wh.audit.exact(channel, channel.guarantee.metric, sites=places).holds


@pytest.mark.parametrize(
    ("solved", "again"),
    [(0.97e-2, 0.84e-2), (0.99e-2, 0.88e-2), (0.1e-2, 0.5e-2)],
)
def test_what_rounding_takes_of_the_gap_is_asked_besides(monkeypatch, solved, again):
    """Twice what it took, so that it is there when as much is taken again; a half at most."""
    from dataclasses import replace

    from whereish.mechanisms.channels import optimal

    asked, solve, certified = [], optimal.solve_optimal, optimal._certified

    def solving(*args, gap, **options):
        asked.append(gap)
        found = solve(*args, gap=gap, **options)
        return replace(found, upper=found.lower / (1 - solved)) if len(asked) == 1 else found

    def rounded(*args):
        found = certified(*args)
        if len(asked) == 1:  # as if rounding had brought it above the gap
            found = replace(found, loss=found.lower_bound / (1 - 1.05e-2))
        return found

    monkeypatch.setattr(optimal, "solve_optimal", solving)
    monkeypatch.setattr(optimal, "_certified", rounded)
    places = 100.0 * np.random.default_rng(1).uniform(0, 4, (20, 2))
    found = optimal.optimal_channel(places, None, "0.01/m", gap=1e-2)
    assert asked == pytest.approx([1e-2, again])
    assert found.status == "optimal"
    assert found.gap <= 1e-2
    assert found.details["lower_bound"] == found.lower_bound
