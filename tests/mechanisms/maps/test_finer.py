"""Laws at the centres of half cells: the same contract as at corners, less error, exact draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import whereish as wh
from whereish.errors import InvalidInput
from whereish.lbs.areas import retrieval_radius_by_report


def noisy(shape: tuple[int, ...] = (7, 8)) -> wh.PrivacyMap:
    levels = np.random.default_rng(1).uniform(0.006, 0.014, shape)
    return wh.PrivacyMap(levels, cell="100 m")


@pytest.fixture(scope="module")
def finer() -> wh.EikonalMechanism:
    return wh.EikonalMechanism.build(noisy(), finer=True, frame=0)


def test_reports_are_centres_of_half_cells_and_cost_less(finer):
    assert finer.reports.shape == (14, 16)
    places = finer.report(noisy().raster.centres(), rng=wh.SeededRandomness(2)).coordinates
    inside = places[((places > 50.0) & (places < [750.0, 650.0])).all(axis=1)]
    assert len(inside) > 10
    np.testing.assert_allclose(np.mod(inside, 50.0), 25.0)
    assert finer.factor <= 1.0
    coarse = wh.EikonalMechanism.build(noisy(), frame=0)
    assert finer.mse() < 0.97 * coarse.mse()
    assert 0.5 < finer.lowered.min() <= finer.lowered.max() < 1.2
    assert finer.mse(remap=finer.posterior_mean()) < finer.mse()


def test_draws_have_the_stated_law_and_no_other(finer):
    """Chi-square at a place beside a border; a law a hundredth of a cell away is told apart."""
    place = np.array([[308.0, 421.0]])
    draws = 200_000
    reports = finer.report(np.repeat(place, draws, axis=0), rng=wh.SeededRandomness(5))
    counts = np.bincount(finer.reports.locate(reports.coordinates), minlength=14 * 16)

    def p_value(at: np.ndarray) -> float:
        law = finer.distribution(at).ravel()
        common = law * draws > 20
        assert counts[law == 0].sum() == 0
        seen, expected = counts[common], law[common] * draws
        if law[~common].any():
            seen = np.append(seen, counts[~common].sum())
            expected = np.append(expected, law[~common].sum() * draws)
        return float(stats.chisquare(seen, expected).pvalue)

    assert p_value(place) > 1e-4
    assert p_value(place + np.array([[4.0, 0.0]])) < 1e-6


def test_padded_draws_have_the_same_law(finer):
    place = np.repeat([[308.0, 421.0]], 7_000, axis=0)
    law = finer.distribution(place[:1]).ravel()
    reports = finer.report(place, rng=wh.SeededRandomness(6), padded=True)
    counts = np.bincount(finer.reports.locate(reports.coordinates), minlength=len(law))
    common = law * len(place) > 20
    seen = np.append(counts[common], counts[~common].sum())
    expected = np.append(law[common], law[~common].sum()) * len(place)
    assert stats.chisquare(seen, expected).pvalue > 1e-4


def test_a_file_is_certified_anew(finer, tmp_path):
    finer.save(tmp_path / "finer.npz")
    again = wh.load(tmp_path / "finer.npz")
    assert again.factor == finer.factor
    place = np.array([[333.0, 222.0]])
    np.testing.assert_array_equal(again.distribution(place), finer.distribution(place))
    radii = retrieval_radius_by_report(again, "300 m", 0.9)
    assert (radii.radii_m > 300).all()


@pytest.mark.parametrize("shape", [(1, 6), (9,), (6, 1)])
def test_lines_and_columns(shape):
    built = wh.EikonalMechanism.build(noisy(shape), finer=True)
    assert built.factor <= 1.0
    assert built.reports.rows * built.reports.columns == 2 * int(np.prod(shape))


def test_only_continuous_places_are_finer():
    for places in ("cells", "bilinear"):
        with pytest.raises(InvalidInput, match="finer is for continuous places; got"):
            wh.EikonalMechanism.build(noisy(), places=places, finer=True)
