import json
import math

import numpy as np
import pytest

import whereish as wh
from instances import EPSILON, peaked
from whereish.errors import InvalidInput, NotPrivate
from whereish.mechanisms.saved import load_artefact, save_artefact
from whereish.privacy.guarantee import Basis, Guarantee
from whereish.solvers.channels.rows import TOTAL

RASTER = wh.Raster(4, 5, (658.0, 712.0))
BUILDERS = {
    "optimal": lambda: wh.optimal_channel(RASTER, None, EPSILON, gap=1e-3),
    "exponential": lambda: wh.exponential_channel(RASTER, EPSILON),
    "tight": lambda: wh.tight_channel(RASTER, EPSILON),
    "laplace": lambda: wh.laplace_channel(RASTER, EPSILON),
    "voronoi": lambda: wh.laplace_channel(RASTER.sites(), EPSILON),
    "opt-priv": lambda: wh.opt_priv_channel(RASTER, None, most_loss="500 m"),
    "cloaking": lambda: wh.cloaking_channel(RASTER, np.arange(20) // 7),
    "identity": lambda: wh.identity_channel(RASTER),
    "uniform": lambda: wh.uniform_channel(RASTER),
}


@pytest.fixture(params=BUILDERS, scope="module")
def channel(request):
    return BUILDERS[request.param]()


def test_every_channel_keeps_its_promise_exactly(channel):
    assert all(sum(row) == TOTAL for row in channel.weights.tolist())
    assert channel.verify().upper <= 1
    assert channel.guarantee.basis >= Basis.CERTIFIED


def test_every_channel_survives_a_file(channel, tmp_path):
    path = tmp_path / "mechanism.npz"
    channel.save(path)
    again = wh.Channel.load(path)
    np.testing.assert_array_equal(again.weights, channel.weights)
    np.testing.assert_array_equal(again.reports.coordinates, channel.reports.coordinates)
    assert again.space == channel.space
    assert again.guarantee.source.startswith("verified from a saved channel; all triples checked")
    assert again.guarantee.basis is Basis.CERTIFIED
    certificate = load_artefact(path).certificate
    assert certificate["verified"]["factor"] <= 1
    json.dumps(certificate)


def test_every_channel_is_a_mechanism(channel, rng):
    assert isinstance(channel, wh.Mechanism)
    reports = channel.report(RASTER.sites().points, rng=rng)
    assert len(reports) == len(RASTER)
    assert not channel.report(RASTER.centres()).reproducible
    assert len(channel.report(np.zeros((0, 2)))) == 0


@pytest.mark.parametrize(
    ("space", "metric", "short", "enough"),
    [
        (wh.Plane(), wh.Euclidean(), 1 + 2.0**-49, 1 + 2.0**-42),
        (wh.Sphere(), wh.Geodesic(), 1 + 2e-8, 1 + 9e-8),  # absolute_error is 50 nm, of 1.1 m
    ],
)
def test_verify_allows_for_the_error_of_computed_distances(space, metric, short, enough):
    """A promise that holds only if distances are computed without error is no certificate."""
    sites = wh.Sites(wh.Points(np.array([[0.0, 0.0], [1e-5, 0.0]]), space))
    weights = np.array([[TOTAL // 2, TOTAL // 2], [TOTAL // 4, TOTAL // 4 * 3]])  # leaks ln 2
    (distance,) = metric(sites.coordinates[:1], sites.coordinates[1:])

    def promising(margin: float) -> wh.Channel:
        kept = (math.log(2) * margin / float(distance)) * metric
        return wh.Channel(sites, sites, weights, Guarantee(kept, Basis.CERTIFIED, "a test"))

    assert promising(enough).verify().upper <= 1
    with pytest.raises(NotPrivate):
        promising(short).verify()


def test_merging_columns_keeps_the_promise(channel):
    merged = channel >> wh.nearest_remap(RASTER.centres()[:3])
    assert len(merged.reports) <= 3
    assert merged.guarantee.metric == channel.guarantee.metric
    merged.verify()


def test_restriction_keeps_the_promise(channel):
    some = channel.restricted([1, 5, 6])
    assert len(some.secrets) == 3
    np.testing.assert_array_equal(some.weights, channel.weights[[1, 5, 6]])
    some.verify()


@pytest.mark.parametrize(
    "places",
    [
        wh.Points(np.array([[2.30, 48.84], [2.31, 48.85], [2.34, 48.88]]), wh.Sphere()),
        wh.Points(
            np.array([[652000.0, 6862000.0], [653000, 6862000], [652500, 6864000]]),
            wh.Plane.projected("EPSG:2154", wh.Box(2.2, 48.8, 2.5, 48.9)),
        ),
        wh.Points(np.array([[0.0], [500.0], [1700.0]]), wh.Line()),
    ],
    ids=["globe", "projected plane", "line"],
)
def test_every_space_survives_a_file(places, tmp_path):
    channel = wh.optimal_channel(places, None, EPSILON)
    channel.save(tmp_path / "mechanism.npz")
    again = wh.Channel.load(tmp_path / "mechanism.npz")
    assert again.space == places.space
    assert again.guarantee.metric == channel.guarantee.metric
    assert again.details["loss"] == channel.loss


def test_a_changed_file_is_refused(tmp_path):
    channel = BUILDERS["exponential"]()
    path = tmp_path / "mechanism.npz"
    channel.save(path)
    with np.load(path) as file:
        arrays = dict(file)
    weights = arrays["weights"].copy()
    weights[0, 0] += 1
    weights[0, 1] -= 1
    np.savez(path, **{**arrays, "weights": weights})
    with pytest.raises(InvalidInput, match="do not match their certificate"):
        wh.Channel.load(path)
    path.write_bytes(b"not a mechanism")
    with pytest.raises(InvalidInput, match="not a mechanism"):
        wh.Channel.load(path)
    with pytest.raises(InvalidInput, match="no file"):
        wh.Channel.load(tmp_path / "absent.npz")


def test_a_false_promise_is_refused_on_verification(tmp_path):
    channel = BUILDERS["exponential"]()
    metric = 0.5 * channel.guarantee.metric
    boast = wh.Channel(
        channel.secrets,
        channel.reports,
        channel.weights,
        wh.Guarantee(metric, Basis.CERTIFIED, "a boast"),
    )
    with pytest.raises(NotPrivate, match="times the promised metric"):
        boast.verify()
    with pytest.raises(NotPrivate):
        boast.save(tmp_path / "boast.npz")


def test_metres_are_not_taken_for_degrees_nor_degrees_for_metres(tmp_path):
    """80 m, read as degrees, are 8,900 km; and 180 degrees are a metre at a pole."""
    told = np.array([[TOTAL - 1, 1], [1, TOTAL - 1]])
    street = wh.Points(np.array([[0.0, 0.0], [80.0, 0.0]]), wh.Plane())
    pole = wh.Points(np.array([[0.0, 89.99999], [180.0, 89.99999]]), wh.Sphere())
    for places, metric in (
        (street, wh.Geodesic()),
        (street, wh.GreatCircle()),
        (pole, wh.Euclidean()),
        (pole, wh.Manhattan()),
    ):
        assert math.log(TOTAL) < metric(*places.coordinates)  # the rows would keep it
        promise = Guarantee(metric, Basis.CERTIFIED, "a test")
        with pytest.raises(InvalidInput, match="the metric must be one on"):
            wh.Channel(wh.Sites(places), wh.Sites(places), told, promise)
        for build in (wh.exponential_channel, wh.tight_channel):
            with pytest.raises(InvalidInput, match="the metric must be one on"):
                build(places, "1/m", metric=metric)
        path = tmp_path / "forged.npz"
        ground = wh.Geodesic() if places is pole else wh.Euclidean()
        wh.exponential_channel(places, "1/m", metric=ground).save(path)
        saved = load_artefact(path)
        words = {k: v for k, v in saved.certificate.items() if k not in ("sha256", "kind")}
        words["guarantee"] = {**words["guarantee"], "metric": metric.to_json()}
        save_artefact(path, saved.kind, {**saved.arrays, "weights": told}, words)
        with pytest.raises(InvalidInput, match="the metric must be one on"):
            wh.load(path)


@pytest.mark.parametrize("distances", [np.array([["0", "9"], ["9", "0"]]), np.zeros((2, 2)) + 1j])
def test_distances_in_a_file_are_numbers(distances, tmp_path):
    path = tmp_path / "forged.npz"
    wh.exponential_channel([[0, 0], [100, 0]], "0.01/m").save(path)
    saved = load_artefact(path)
    words = {k: v for k, v in saved.certificate.items() if k not in ("sha256", "kind")}
    save_artefact(path, saved.kind, {**saved.arrays, "distances": distances}, words)
    with pytest.raises(InvalidInput, match="'distances' in the file must be numbers"):
        wh.load(path)


def test_secrets_must_be_sites():
    channel = BUILDERS["uniform"]()
    with pytest.raises(InvalidInput, match="1 of 2 are not") as told:
        channel.report(np.vstack([RASTER.centres()[0], [123.456, 78.9]]))
    assert "123.456" not in str(told.value)
    moved = channel.nearest_sites([[123.456, 78.9]])
    np.testing.assert_array_equal(moved.coordinates[0], RASTER.centres()[0])


def test_weights_must_be_whole():
    sites = RASTER.sites()
    with pytest.raises(InvalidInput, match="2\\^62"):
        wh.Channel(sites, sites, np.ones((20, 20), np.int64), BUILDERS["uniform"]().guarantee)
    with pytest.raises(InvalidInput, match="64-bit integers"):
        wh.Channel(sites, sites, np.eye(20), BUILDERS["uniform"]().guarantee)


def test_of_matrix_promises_what_its_rows_keep():
    sites = RASTER.centres()[:3]
    matrix = np.array([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0], [0.25, 0.5, 0.25]])
    channel = wh.Channel.of_matrix(matrix, sites)
    leaked = channel.guarantee.metric.distances
    assert leaked[0, 1] == pytest.approx(np.log(2), rel=1e-9)
    assert np.isinf(leaked[0, 2])
    with pytest.raises(InvalidInput, match="sum to 1"):
        wh.Channel.of_matrix(2 * matrix, sites)


def test_a_file_of_another_version_is_refused_in_a_sentence(tmp_path):
    path = tmp_path / "channel.npz"
    BUILDERS["exponential"]().save(path)
    saved = load_artefact(path)
    for name in saved.arrays:
        fewer = {key: value for key, value in saved.arrays.items() if key != name}
        save_artefact(path, saved.kind, fewer, {"guarantee": saved.certificate["guarantee"]})
        with pytest.raises(InvalidInput, match="build the mechanism again"):
            wh.Channel.load(path)


def test_exponential_is_close_to_its_bound_only_near():
    places, _ = peaked(5, 5)
    metric = wh.Epsilon.of(EPSILON) * wh.Euclidean()
    channel = wh.exponential_channel(places, EPSILON)
    assert wh.audit.exact(channel, metric, sites=places).holds
    assert wh.audit.exact(channel, 0.5 * metric, sites=places).refuted


def test_tight_meets_its_constraints_with_equality():
    places, prior = peaked(5, 5)
    metric = wh.Epsilon.of(EPSILON) * wh.Euclidean()
    channel = wh.tight_channel(places, EPSILON)
    assert wh.audit.exact(channel, metric, sites=places).holds
    assert wh.audit.exact(channel, 0.999 * metric, sites=places).refuted
    log = np.log(channel.matrix)
    own = np.diag(log)[None] - log
    np.testing.assert_allclose(own, metric.matrix(places), atol=1e-6)
    optimum = wh.optimal_channel(places, prior, EPSILON).loss
    loss = wh.quality_loss(channel >> wh.BayesianRemap(prior), prior)
    assert optimum <= loss <= 1.1 * optimum


@pytest.mark.parametrize("twice", [True, False])
def test_tight_needs_weights_that_are_not_negative(twice):
    """A place twice; a site encircled closely by others, whose own weight turns negative."""
    angles = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    ring = 20.0 * np.c_[np.cos(angles), np.sin(angles)]
    places = np.zeros((2, 2)) if twice else np.concatenate([[[0.0, 0.0]], ring])
    with pytest.raises(InvalidInput, match="weights >= 0"):
        wh.tight_channel(places, "1/km" if twice else "20/km")


def test_laplace_matches_its_sampler(rng):
    """The channel's rows are the masses of clamped planar Laplace noise."""
    channel = wh.laplace_channel(RASTER, EPSILON)
    centre = RASTER.centres()[7]
    noise = wh.PlanarLaplace(EPSILON, resolution="1 mm")
    reports = noise.report(np.repeat(centre[None], 200_000, axis=0), rng=rng)
    shares = np.bincount(RASTER.locate(reports.coordinates), minlength=20) / 200_000
    np.testing.assert_allclose(shares, channel.matrix[7], atol=0.005)
    assert wh.audit.exact(channel, 0.95 * channel.guarantee.metric, sites=RASTER.sites()).refuted


@pytest.mark.parametrize("level", ["1e-3/km", "30/km", "1/m"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (5, 3)])
def test_laplace_at_extremes(level, shape):
    channel = wh.laplace_channel(wh.Raster(*shape, (658.0, 712.0)), level)
    channel.verify()


def test_laplace_from_other_places_than_cells():
    by_table = wh.laplace_channel(RASTER, EPSILON)
    one_by_one = wh.laplace_channel(RASTER, EPSILON, secrets=RASTER.sites())
    np.testing.assert_allclose(one_by_one.matrix, by_table.matrix, atol=1e-10)
    places = wh.Points(np.random.default_rng(6).uniform(0, 3000, (12, 2)), wh.Plane())
    scattered = wh.laplace_channel(RASTER, EPSILON, secrets=places) >> wh.nearest_remap(places)
    scattered.verify()
    assert len(scattered.reports) <= 12
    sphere = wh.Points(np.array([[2.3, 48.8]]), wh.Sphere())
    with pytest.raises(InvalidInput, match="same plane"):
        wh.laplace_channel(RASTER, EPSILON, secrets=sphere)
    with pytest.raises(InvalidInput, match="on a sphere"):
        wh.laplace_channel(sphere, EPSILON)


def test_laplace_over_voronoi_cells_reports_the_closest_site(rng):
    places = np.random.default_rng(6).uniform(0, 3000, (12, 2))
    channel = wh.laplace_channel(places, EPSILON)
    channel.verify()
    noise = wh.PlanarLaplace(EPSILON, resolution="1 mm")
    reports = noise.report(np.repeat(places[3][None], 200_000, axis=0), rng=rng)
    shares = np.bincount(channel.reports.nearest(reports.coordinates), minlength=12) / 200_000
    np.testing.assert_allclose(shares, channel.matrix[3], atol=0.005)
    assert not np.allclose(shares, channel.matrix[4], atol=0.05)
    assert wh.audit.exact(channel, channel.guarantee.metric, sites=places).holds
    assert wh.audit.exact(channel, 0.9 * channel.guarantee.metric, sites=places).refuted


@pytest.mark.parametrize("level", ["1e-3/km", "30/km", "1/m"])
@pytest.mark.parametrize(
    "places", [[[0.0, 0.0]], [[0.0, 0.0], [500.0, 0.0]], [[0.0, 0.0], [900.0, 1.0], [0.0, 0.0]]]
)
def test_laplace_over_few_or_repeated_sites(level, places):
    wh.laplace_channel(np.array(places), level).verify()


def test_cloaking_hides_within_zones_and_nothing_across():
    channel = BUILDERS["cloaking"]()
    metric = channel.guarantee.metric.distances
    assert metric[0, 6] == 0
    assert np.isinf(metric[0, 7])
    assert len(channel.reports) == 3
    with pytest.raises(InvalidInput, match="label each"):
        wh.cloaking_channel(RASTER, [0, 1])


def test_opt_priv_errs_most_within_its_loss():
    places, prior = peaked(5, 5)
    channel = wh.opt_priv_channel(places, prior, most_loss="600 m")
    loss = wh.quality_loss(channel, prior)
    assert loss <= 600 * (1 + 1e-9)
    private = wh.optimal_channel(places, prior, EPSILON)
    same_loss = wh.opt_priv_channel(places, prior, most_loss=private.loss)
    assert wh.adversary_error(same_loss, prior) >= wh.adversary_error(private, prior) * (1 - 1e-6)
    with pytest.raises(InvalidInput, match="most_loss must be at least"):
        wh.opt_priv_channel(places, prior, most_loss="-1 m")


def test_secrets_are_restricted_by_a_mask():
    channel = wh.laplace_channel(wh.Raster(3, 4, (500.0, 500.0)), "1/km")
    some = channel.restricted([False, True, True, *[False] * 9])
    assert isinstance(some, wh.Channel)
    assert np.array_equal(some.secrets.coordinates, channel.secrets.coordinates[1:3])
