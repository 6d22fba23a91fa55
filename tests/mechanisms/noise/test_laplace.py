from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad

from whereish.errors import InvalidInput, SpaceMismatch
from whereish.mechanisms.noise.axis_laplace import Laplace1D, ManhattanLaplace
from whereish.mechanisms.noise.float_noise import corrected_epsilon
from whereish.mechanisms.noise.globe_laplace import GlobeLaplace
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.privacy import Euclidean, Geodesic, GreatCircle
from whereish.randomness import SeededRandomness
from whereish.space import Box, Plane, Points, Sphere
from whereish.space.sphere import RADIUS_M, true_metres
from whereish.units import Epsilon, Length

ALL = [PlanarLaplace, GlobeLaplace, ManhattanLaplace, Laplace1D]


@pytest.mark.parametrize("kind", ALL)
def test_constructors_from_what_people_know(kind):
    assert kind.with_level(math.log(4), "200 m").epsilon == Epsilon.of("ln(4)/200 m")
    assert kind.with_mean_error("350 m").mean_error.m == pytest.approx(350, rel=1e-9)
    mechanism = kind.with_quantile(0.95, "1 km")
    assert mechanism.quantile(0.95).m == pytest.approx(1000, rel=1e-9)
    assert mechanism.coverage("1 km") == pytest.approx(0.95, rel=1e-9)
    assert mechanism.cdf(mechanism.ideal_quantile(0.95)) == pytest.approx(0.95, rel=1e-9)
    for chance in (-0.1, 1.0, math.nan, "0.5"):
        with pytest.raises(InvalidInput, match="probability"):
            mechanism.quantile(chance)
    with pytest.raises(InvalidInput, match="no epsilon"):
        kind.with_mean_error(Length(1e12))
    for bad in ("0.01", "0/m", "-1/m", "nan/m", "1e6/m"):
        with pytest.raises(InvalidInput):
            kind(bad)


@pytest.mark.parametrize("eps", [1e-8, 1e-7, 1e-6, 1e-4, 0.01])
def test_the_globe_in_closed_form(eps):
    mechanism = GlobeLaplace(Epsilon(eps))
    reach = min(math.pi, 60 / (eps * RADIUS_M))

    def law(t):
        return math.sin(t) * math.exp(-eps * RADIUS_M * t)

    mass = quad(law, 0, reach)[0]
    mean = quad(lambda t: t * law(t), 0, reach)[0] / mass * RADIUS_M
    below = quad(law, 0, reach / 20)[0] / mass
    assert mechanism.mean_error.m == pytest.approx(mean * true_metres(), rel=1e-7)
    assert mechanism.cdf(Length(RADIUS_M * reach / 20)) == pytest.approx(below, rel=1e-7)
    density = math.exp(mechanism.log_density([[0, 90]], [[0, 90]])[0])
    assert density * 2 * math.pi * RADIUS_M**2 * mass == pytest.approx(1, rel=1e-7)
    assert mechanism.cdf("0 m") == 0
    assert mechanism.cdf("30000 km") == 1


def test_the_planar_law_in_closed_form():
    mechanism = PlanarLaplace("1/200 m")
    assert mechanism.mean_error == Length(400)
    assert mechanism.cdf("200 m") == pytest.approx(1 - 2 / math.e)
    density = math.exp(mechanism.log_density([[30.0, 40.0]], [[0.0, 0.0]])[0])
    assert density == pytest.approx(math.exp(-0.25) / (2 * math.pi * 200**2))


def test_a_projection_is_charged():
    plane = Plane.projected("EPSG:3857", Box(2, 48.5, 2.6, 49.1))
    mechanism = PlanarLaplace("0.01/m", plane=plane)
    generator = np.random.default_rng(0)
    lon, lat = generator.uniform(2, 2.6, (2, 2000)), generator.uniform(48.5, 49.1, (2, 2000))
    a, b = (plane.from_degrees(x, y).coordinates for x, y in zip(lon, lat, strict=True))
    true = 0.01 * Geodesic()(np.column_stack([lon[0], lat[0]]), np.column_stack([lon[1], lat[1]]))
    promised = mechanism.guarantee.metric(a, b)
    assert (promised <= true).all()
    assert (promised / true).max() > 0.97
    assert not (0.01 * Euclidean()(a, b) <= true).any(), "uncharged Web Mercator breaks epsilon"
    assert "EPSG:3857" in mechanism.guarantee.source


def test_reports_are_nodes_of_the_public_lattice():
    reports = PlanarLaplace("0.01/m", resolution="5 m").report(np.full((1000, 2), 2.2)).coordinates
    assert np.array_equal(reports % 5, np.zeros_like(reports))
    globe = GlobeLaplace("0.01/m").report(np.tile([[2.33316, 48.85412]], (1000, 1))).coordinates
    assert all(len(repr(float(value)).split(".")[1]) <= 5 for value in globe.ravel())


def test_poles_and_antimeridian_have_one_name_each():
    mechanism = GlobeLaplace("0.01/m", decimals=3)
    reports = mechanism.report(np.tile([[180.0, 0.0], [-180.0, 0.0]], (5000, 1))).coordinates
    assert (reports[:, 0] >= -180).all()
    assert (reports[:, 0] < 180).all()
    assert (np.abs(reports[:, 0]) > 179).all()
    polar = mechanism.report(np.tile([[123.0, 90.0]], (5000, 1))).coordinates
    assert (polar[:, 1] <= 90).all()
    at_pole = polar[polar[:, 1] == 90]
    assert len(at_pole) > 10
    assert (at_pole[:, 0] == 0).all()


def test_seeded_reports_are_marked_and_secure_ones_are_not():
    mechanism = GlobeLaplace("0.01/m")
    seeded = mechanism.report([[0, 0]], rng=SeededRandomness(1))
    assert seeded.reproducible
    assert np.array_equal(seeded, mechanism.report([[0, 0]], rng=SeededRandomness(1)))
    assert not mechanism.report([[0, 0]]).reproducible
    fresh = mechanism.report(np.zeros((100, 2))), mechanism.report(np.zeros((100, 2)))
    assert not np.array_equal(*fresh)


def test_wrong_places_are_refused():
    with pytest.raises(SpaceMismatch):
        PlanarLaplace("0.01/m").report(Points([[0, 0]], Sphere()))
    with pytest.raises(InvalidInput, match="coarser"):
        PlanarLaplace("0.01/m", resolution="0.001 mm").report([[1e9, 0]])
    with pytest.raises(InvalidInput, match="decimals"):
        GlobeLaplace("0.01/m", decimals=12)
    with pytest.raises(InvalidInput, match="projection"):
        ManhattanLaplace("0.01/m", plane=Plane.around(2.35, 48.85, "10 km"))
    with pytest.raises(InvalidInput, match="resolution"):
        PlanarLaplace("0.01/m", resolution="0 m")
    for kind in (PlanarLaplace, ManhattanLaplace, Laplace1D):
        with pytest.raises(InvalidInput, match="at least"):
            kind("1e-5/m", resolution="1e-12 mm")
    plane = Plane.around(2.35, 48.85, "10 km")
    with pytest.raises(InvalidInput, match="declared region"):
        PlanarLaplace("0.01/m", plane=plane).report([[40_000.0, 0.0]])
    assert len(PlanarLaplace("0.01/m", plane=plane).report([[9_000.0, 0.0]])) == 1


def test_the_equator_has_noise_in_both_directions():
    """A known public library loses all north-south noise there."""
    reports = GlobeLaplace("0.01/m", decimals=7).report(np.zeros((200_000, 2))).coordinates
    east, north = reports.std(axis=0)
    assert north / east == pytest.approx(1, abs=0.02)
    assert Length(north * math.pi / 180 * RADIUS_M).m == pytest.approx(100 * math.sqrt(3), rel=0.02)


@pytest.mark.parametrize("lat", [0.0, 45.0, -60.0, 89.9])
def test_mean_error_is_the_same_everywhere(lat):
    secret = np.array([[179.9999, lat]])
    reports = GlobeLaplace("0.01/m").report(np.repeat(secret, 200_000, 0))
    assert GreatCircle()(reports, secret).mean() == pytest.approx(200, rel=0.01)


class TestCorrectedEpsilon:
    """Theorem 5.3 of Bordenabe's thesis."""

    @staticmethod
    def kept(corrected, unit, digits, r_max=1e5):
        q = unit / (r_max * 10.0**-digits)
        grown = 2 * math.exp(corrected * unit)
        assert q > grown
        return corrected + math.log((q + grown) / (q - grown)) / unit

    @pytest.mark.parametrize("digits", [7, 9, 16])
    @pytest.mark.parametrize("unit", [100.0, 10.0, 1.0])
    def test_the_inequality_holds_and_is_tight(self, digits, unit):
        epsilon = math.log(4) / 200
        try:
            corrected = corrected_epsilon(
                Epsilon(epsilon), unit=Length(unit), r_max="100 km", digits=digits
            ).per_m
        except InvalidInput:
            assert self.kept(1e-12, unit, digits) > epsilon or unit / (1e5 * 10.0**-digits) <= 2
            return
        assert self.kept(corrected, unit, digits) <= epsilon
        assert self.kept(corrected * (1 + 1e-9) + 1e-15, unit, digits) > epsilon

    def test_more_digits_cost_less(self):
        levels = [
            corrected_epsilon("1/km", unit="100 m", r_max="100 km", digits=d).per_m
            for d in (7, 9, 16)
        ]
        assert levels == sorted(levels)
        assert levels[0] < 0.999e-3
        assert levels[2] == pytest.approx(1e-3, rel=1e-9)

    def test_too_few_digits_are_refused_with_the_cure(self):
        with pytest.raises(InvalidInput, match="larger grid unit"):
            corrected_epsilon("0.01/m", unit="1 m", r_max="100 km", digits=5)
        with pytest.raises(InvalidInput, match="larger grid unit"):
            corrected_epsilon("10/m", unit="0.01 mm", r_max="100 km", digits=7)
        assert corrected_epsilon("10/m", unit="1 km", r_max="100 km", digits=16).per_m < 10
        with pytest.raises(InvalidInput, match="digits"):
            corrected_epsilon("0.01/m", unit="1 m", r_max="100 km", digits=0)
