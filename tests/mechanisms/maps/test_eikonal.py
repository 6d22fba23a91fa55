"""The eikonal mechanism: exact laws, both guarantees, files."""

from __future__ import annotations

import numpy as np
import pytest

from whereish.audit import exact, statistical
from whereish.errors import InvalidInput, NotPrivate, SpaceMismatch
from whereish.mechanisms.maps.eikonal import EikonalMechanism
from whereish.privacy.guarantee import Basis
from whereish.privacy.maps.geodesic import MapGeodesic
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.randomness import SeededRandomness
from whereish.space.box import Box
from whereish.space.line import Line
from whereish.space.plane import Plane
from whereish.space.points import Points
from whereish.space.sphere import Sphere

from laws import chi_square

N = 16
CELL = 1500.0


def city_map() -> PrivacyMap:
    i, j = np.mgrid[:N, :N] / N
    return PrivacyMap(4e-4 + 1.2e-3 * np.exp(-((i - 0.5) ** 2 + (j - 0.4) ** 2) * 12), "1500 m")


def step_map() -> PrivacyMap:
    return PrivacyMap(np.where(np.arange(N) < N // 2, 2e-4, 2e-3)[None].repeat(N, 0), "1500 m")


@pytest.fixture(scope="module")
def city() -> EikonalMechanism:
    return EikonalMechanism.build(city_map(), places="cells")


@pytest.fixture(scope="module")
def step() -> EikonalMechanism:
    return EikonalMechanism.build(step_map(), places="cells")


def channel(mechanism: EikonalMechanism) -> np.ndarray:
    rows = [mechanism.distribution(place).ravel() for place in mechanism.map.raster.centres()]
    matrix = np.array(rows)
    matrix = matrix[:, matrix.max(axis=0) > 0]
    return matrix / matrix.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("name", ["city", "step"])
def test_the_exact_audit_confirms_the_certificate_and_refutes_less(name, request):
    mechanism = request.getfixturevalue(name)
    assert mechanism.guarantee.basis is Basis.CERTIFIED
    cells = np.arange(N * N)
    distances = MapGeodesic(mechanism.map).between_cells(cells[:, None], cells[None])
    distances = np.minimum(distances, distances.T)
    matrix = channel(mechanism)
    assert exact(matrix, distances).holds
    assert exact(matrix, 0.99 * distances).refuted
    assert 0.999 < mechanism.factor <= 1.0


@pytest.mark.parametrize("padded", [False, True])
def test_reports_follow_the_distribution(city, rng, padded):
    place = np.array([9300.0, 12_100.0])
    reports = city.report(np.tile(place, (40_000, 1)), rng=rng, padded=padded)
    counts = np.bincount(city.reports.locate(reports.coordinates), minlength=len(city.reports) + 1)
    assert chi_square(counts, city.distribution(place).ravel()) > 1e-3
    elsewhere = city.distribution(place + np.array([CELL, 0.0])).ravel()
    assert chi_square(counts, elsewhere) < 1e-6


def test_padded_draws_take_each_cell_for_exactly_its_mass(city):
    """At the borders of the cumulated masses, where one count too many is one cell too far."""
    law, sampler = city.built.law, city._draws.sampler
    secret = int(city.built.secrets[N * 7 + 5])
    masses = law.weights.ravel() * law.table[law.metric.distances(np.array([secret]))[0]]
    ends = np.cumsum(masses.astype(object))
    assert ends[-1] == int(law.sums[secret])
    taken = np.flatnonzero(masses)[:: max(1, np.count_nonzero(masses) // 40)]
    borders = {0, int(ends[-1]) - 1, *(int(ends[k]) - 1 for k in taken)}
    borders |= {int(ends[k]) for k in taken if ends[k] < ends[-1]}
    thresholds = np.array(sorted(borders), np.uint64)
    cells = [next(k for k, end in enumerate(ends) if end > t) for t in sorted(borders)]
    starts = np.full(len(thresholds), law.metric.padded(np.array([secret]))[0])
    drawn = sampler._padded(starts, thresholds)
    np.testing.assert_array_equal(drawn, law.metric.padded(np.array(cells)))


def test_reports_are_centres_marked_and_in_the_space(city, rng):
    report = city.report(city_map().raster.centres(), rng=rng)
    assert report.reproducible
    assert not city.report([[1000.0, 1000.0]]).reproducible
    cells = city.reports.locate(report.coordinates)
    np.testing.assert_allclose(city.reports.centres()[cells], report.coordinates)
    with pytest.raises(SpaceMismatch):
        city.report(Points(np.array([[1.0]]), Line()))


def test_a_place_outside_is_taken_for_the_closest_cell(city):
    np.testing.assert_array_equal(
        city.distribution([-9e4, 1e3]), city.distribution([CELL / 2, 1e3])
    )


def test_continuous_places_pass_the_audit_across_a_border_and_cells_fail_it(rng):
    """Two places 20 m apart on either side of a cell border."""
    privacy_map = PrivacyMap(np.full((12, 12), 2e-3), "500 m")
    cells = EikonalMechanism.build(privacy_map, places="cells")
    continuous = EikonalMechanism.build(privacy_map, places="continuous")
    assert continuous.factor <= 1.0
    x, y = np.array([2990.0, 3250.0]), np.array([3010.0, 3250.0])
    d = float(MapGeodesic(privacy_map, continuous=True)(x[None], y[None])[0])
    assert d == pytest.approx(0.04, rel=1e-6)

    def audited(mechanism):
        return statistical(
            lambda secrets: mechanism.report(secrets, rng=rng).coordinates,
            x,
            y,
            distance=d,
            samples=200_000,
            rng=SeededRandomness(4),
        )

    assert audited(cells).epsilon_lower > 2.0
    assert audited(continuous).epsilon_lower <= 1.0
    logs = np.log(continuous.distribution(x)), np.log(continuous.distribution(y))
    assert np.abs(logs[0] - logs[1]).max() <= d
    logs = np.log(cells.distribution(x)), np.log(cells.distribution(y))
    assert np.abs(logs[0] - logs[1]).max() > 10 * d


@pytest.mark.parametrize(("level", "flat"), [(2e-3, False), (4e-4, True)])
def test_continuous_reports_follow_the_bilinear_mixture(level, flat, rng, tmp_path):
    mechanism = EikonalMechanism.build(
        PrivacyMap(np.full((10, 10), level), "500 m"), places="bilinear"
    )
    assert (mechanism.built.law.core > 0) == flat
    mechanism.save(tmp_path / "m.npz")
    mechanism = EikonalMechanism.load(tmp_path / "m.npz")
    place = np.array([2130.0, 2840.0])
    reports = mechanism.report(np.tile(place, (40_000, 1)), rng=rng)
    counts = np.bincount(
        mechanism.reports.locate(reports.coordinates), minlength=len(mechanism.reports) + 1
    )
    assert chi_square(counts, mechanism.distribution(place).ravel()) > 1e-3


def test_mean_squared_error_and_the_posterior_mean(city):
    prior = city.map.values - 3.9e-4
    centres = city.reports.centres()
    direct = 0.0
    weights = prior.ravel() / prior.sum()
    for share, place in zip(weights, city.map.raster.centres(), strict=True):
        away = ((centres - place) ** 2).sum(axis=1)
        direct += share * float(city.distribution(place).ravel() @ away)
    assert city.mse(prior) == pytest.approx(direct, rel=1e-9)
    remap = city.posterior_mean(prior)
    assert city.mse(prior, remap=remap) < city.mse(prior)
    remapped = city >> remap
    assert remapped.guarantee == city.guarantee
    assert len(remapped.report([[1000.0, 1000.0]])) == 1
    with pytest.raises(InvalidInput, match="one entry per cell"):
        city.mse(np.ones(3))


def test_it_beats_its_baselines(city, step):
    for mechanism in (city, step):
        half = EikonalMechanism.exponential(mechanism.map)
        assert half.factor <= 1.0
        assert mechanism.mse() < 0.6 * half.mse()
        assert mechanism.mse() < 6 / mechanism.map.values.min() ** 2


def test_what_was_lowered_is_told(city, step):
    assert city.lowered.mean() > step.lowered.mean()
    assert step.lowered.min() < 0.99
    assert city.lowered.max() <= 1.0
    assert step.lowered.shape == (N, N)


@pytest.mark.parametrize("name", ["city", "step"])
def test_saved_and_loaded(name, request, tmp_path):
    mechanism = request.getfixturevalue(name)
    path = tmp_path / "m.npz"
    mechanism.save(path)
    loaded = EikonalMechanism.load(path)
    assert loaded.recertify() == mechanism.factor
    assert loaded.guarantee == mechanism.guarantee
    places = np.array([[1000.0, 2000.0], [6100.0, 300.0]])
    np.testing.assert_array_equal(
        loaded.report(places, rng=SeededRandomness(3)).coordinates,
        mechanism.report(places, rng=SeededRandomness(3)).coordinates,
    )


def test_altered_numbers_are_refused(step, tmp_path):
    path = tmp_path / "m.npz"
    step.save(path)
    with np.load(path) as file:
        arrays = dict(file)
    arrays["weights"] = arrays["weights"].copy()
    arrays["weights"][3] += 1
    np.savez(tmp_path / "altered.npz", **arrays)
    with pytest.raises(InvalidInput, match="certificate"):
        EikonalMechanism.load(tmp_path / "altered.npz")
    (tmp_path / "text.npz").write_text("no")
    with pytest.raises(InvalidInput):
        EikonalMechanism.load(tmp_path / "text.npz")


def test_a_law_that_is_not_its_certificate_is_found_out(step):
    from dataclasses import replace

    weights = step.built.law.weights.copy()
    weights[:20] *= np.uint64(2)
    forged = replace(step, built=replace(step.built, law=replace(step.built.law, weights=weights)))
    with pytest.raises(NotPrivate):
        forged.recertify()


def test_maps_along_a_line(rng):
    wealth = PrivacyMap(0.5 + 2.0 * np.linspace(0, 1, 50), cell=(0.2, 0.2))
    for places in ("cells", "bilinear", "continuous"):
        mechanism = EikonalMechanism.build(wealth, places=places)
        assert mechanism.factor <= 1.0
        report = mechanism.report(np.array([1.0, 5.0]), rng=rng)
        assert report.coordinates.shape == (2, 1)
        assert isinstance(report.space, Line)
        assert mechanism.distribution(np.array([5.0])).sum() == pytest.approx(1.0)
    with pytest.raises(InvalidInput, match="no frame"):
        EikonalMechanism.build(wealth, frame=3)


@pytest.mark.parametrize("places", ["cells", "bilinear", "continuous"])
def test_one_cell_is_always_reported(places, rng, tmp_path):
    mechanism = EikonalMechanism.build(PrivacyMap([[1e-3]], "100 m"), places=places)
    assert mechanism.report([[10.0, 20.0]], rng=rng).coordinates.tolist() == [[50.0, 50.0]]
    assert mechanism.factor == 0.0
    mechanism.save(tmp_path / "m.npz")
    assert EikonalMechanism.load(tmp_path / "m.npz").lowered.tolist() == [[1.0]]


@pytest.mark.parametrize("places", ["cells", "bilinear", "continuous"])
@pytest.mark.parametrize("shape", [(1, 2), (2, 1), (2, 2), (3, 12)])
def test_small_maps_of_oblong_cells(places, shape, rng):
    """The promise by brute force: all pairs of centres, all reports."""
    levels = np.linspace(5e-4, 1e-3, shape[0] * shape[1]).reshape(shape)
    privacy_map = PrivacyMap(levels, (800.0, 300.0))
    mechanism = EikonalMechanism.build(privacy_map, places=places)
    centres = privacy_map.raster.centres()
    laws = np.stack([mechanism.distribution(place).ravel() for place in centres])
    given = laws[0] > 0
    assert not laws[:, ~given].any()
    logs = np.log(laws[:, given])
    ratios = np.abs(logs[:, None] - logs[None]).max(axis=-1)
    assert (ratios <= mechanism.guarantee.metric(centres[:, None], centres[None]) + 1e-9).all()
    reports = mechanism.report(centres, rng=rng)
    assert mechanism.reports.box.contains(reports.coordinates).all()


def test_a_plane_that_stretches_gets_a_smaller_level():
    mercator = Plane.projected("EPSG:3857", Box(2.2, 48.8, 2.5, 48.95))
    assert mercator.scale > 1.5
    levels, paris = np.full((6, 6), 2e-3), (256_000.0, 6_250_000.0)
    flat = PrivacyMap(levels, "500 m")
    stretched = PrivacyMap(levels, "500 m", origin=paris, plane=mercator)
    plain, wide = (
        EikonalMechanism.build(levels, places="cells", frame=0) for levels in (flat, stretched)
    )
    assert wide.mse() > 1.2 * plain.mse()


def test_dividing_out_the_stencil(city):
    divided = EikonalMechanism.build(city_map(), places="cells", divide_stencil=True)
    assert divided.divided == pytest.approx(1.0275, abs=1e-4)
    assert divided.mse() > city.mse()
    x, y = np.array([[1000.0, 1000.0]]), np.array([[6000.0, 3000.0]])
    ratio = divided.guarantee.metric(x, y) / city.guarantee.metric(x, y)
    assert ratio[0] == pytest.approx(1 / divided.divided)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"places": "points"}, "places must be"),
        ({"neighbours": 12}, "neighbours"),
        ({"frame": -1}, "frame"),
    ],
)
def test_bad_options(options, words):
    with pytest.raises(InvalidInput, match=words):
        EikonalMechanism.build(city_map(), **options)


def test_the_promise_of_continuous_places_is_the_true_integral():
    levels = np.where(np.arange(129) % 8 == 4, 0.009, 0.04) / 100
    mechanism = EikonalMechanism.build(PrivacyMap(levels, cell="100 m"), places="continuous")
    ends = np.array([[50.0], [12850.0]])
    fine = np.interp(np.linspace(50, 12850, 200_001), 50 + 100 * np.arange(129), levels)
    integral = np.trapezoid(fine, dx=12800 / 200_000)
    assert mechanism.guarantee.metric(ends[:1], ends[1:])[0] == pytest.approx(integral, rel=1e-6)
    p, q = (mechanism.distribution(end) for end in ends)
    seen = (p > 0) & (q > 0)
    assert np.abs(np.log(p[seen] / q[seen])).max() <= integral


def test_secrets_beyond_the_declared_region_are_refused():
    plane = Plane("EPSG:3857", Box(0, 0, 1, 1))
    near = PrivacyMap(np.full((4, 4), 1e-3), cell="1 km", origin=(5e3, 5e3), plane=plane)
    with pytest.raises(InvalidInput, match="declared region"):
        EikonalMechanism.build(near).report([[0.0, 9e6]])


def test_squared_error_and_posterior_mean_between_cells():
    """Against the law itself by another rule, on a map with cells without weight."""
    mechanism = EikonalMechanism.build(PrivacyMap(step_map().values[8:16, 6:14], "500 m"), frame=0)
    centres = mechanism.reports.centres()
    nodes, shares = np.array([-1, 0, 1]) * 500 * np.sqrt(0.15), np.array([5, 8, 5]) / 18
    prior = np.arange(1.0, 65.0)
    total, moments = 0.0, np.zeros((len(centres), 3))
    for weight, place in zip(prior / prior.sum(), mechanism.map.raster.centres(), strict=True):
        for dx, p in zip(nodes, shares, strict=True):
            for dy, q in zip(nodes, shares, strict=True):
                u = place + np.array([dx, dy])
                law = weight * p * q * mechanism.distribution(u).ravel()
                total += float(law @ ((centres - u) ** 2).sum(axis=1))
                moments += law[:, None] * np.array([1.0, *u])
    assert mechanism.mse(prior) == pytest.approx(total, rel=1e-4)
    possible = moments[:, 0] > 1e-9
    remap = mechanism.posterior_mean(prior)
    moved = remap(Points(centres, mechanism.space)).coordinates
    means = moments[possible, 1:] / moments[possible, :1]
    np.testing.assert_allclose(moved[possible], means, atol=1.0)
    assert mechanism.mse(prior, remap=remap) < mechanism.mse(prior)


def test_the_law_of_what_is_no_place_is_refused_in_a_sentence():
    mechanism = EikonalMechanism.build(PrivacyMap(np.full((2, 3), 1e-3), "500 m"), places="cells")
    for place in ([[2.5], [3.5, 4.5]], [10**400, 0]):
        with pytest.raises(InvalidInput, match="must be numbers"):
            mechanism.distribution(place)
    with pytest.raises(SpaceMismatch):
        mechanism.distribution(Points([[2.33, 48.85]], Sphere()))
