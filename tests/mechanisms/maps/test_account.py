"""What `build` says about its law, and the remapped law that it recommends under a prior."""

from __future__ import annotations

import numpy as np
import pytest

import whereish as wh
from whereish.errors import InvalidInput
from whereish.mechanisms.base import Remapped


def city() -> tuple[wh.PrivacyMap, np.ndarray]:
    """Blocks of 4 x 4 cells at levels 1:6, and a prior that goes with them."""
    shares = np.random.default_rng(2).random((5, 5))
    density = np.kron(shares, np.ones((4, 4)))
    return wh.PrivacyMap(5e-4 * (1 + 5 * density), cell="500 m"), density


@pytest.fixture(scope="module")
def built() -> wh.EikonalMechanism:
    levels, density = city()
    return wh.EikonalMechanism.build(levels, places="cells", prior=density)


def test_the_recommended_law_is_remapped_and_keeps_the_guarantee(built):
    _, density = city()
    assert isinstance(built.recommended, Remapped)
    assert built.recommended.guarantee.to_json() == built.guarantee.to_json()
    plain = built.mse(density)
    moved = built.mse(density, remap=built.posterior_mean(density))
    assert moved < 0.95 * plain
    # An estimate from reports, of one draw for each of 40_000 secrets.
    rng = np.random.default_rng(3)
    raster = built.map.raster
    cells = rng.choice(density.size, 40_000, p=density.ravel() / density.sum())
    places = raster.centres()[cells]
    reports = built.recommended.report(places, rng=wh.SeededRandomness(4)).coordinates
    drawn = ((reports - places) ** 2).sum(axis=1)
    error = drawn.std() / np.sqrt(len(drawn))
    assert abs(drawn.mean() - moved) < 5.5 * error
    assert abs(drawn.mean() - plain) > 5.5 * error


def test_without_a_prior_it_recommends_the_remap_for_a_uniform_one():
    levels, _ = city()
    mechanism = wh.EikonalMechanism.build(levels, places="cells")
    uniform = mechanism.mse(remap=mechanism.posterior_mean())
    assert uniform < mechanism.mse()
    assert mechanism.recommended.guarantee.to_json() == mechanism.guarantee.to_json()
    assert "prior" not in mechanism.account()


def test_the_account_names_the_law_and_what_the_remap_gains(built):
    _, density = city()
    told = built.account()
    assert "Chosen: the eikonal law" in told
    assert f"{built.lowered.mean():.3f} of the asked" in told
    assert f"{built.mse(density) ** 0.5:.4g} m" in told
    found = built.built.comparison
    assert f"{found.eikonal / found.exponential:.2f} of the exponential" in told


def test_a_smoother_map_is_suggested_where_steps_cost_much(built):
    """A checkerboard of 4 x 4 cells at 1:20, against a smooth map."""
    i, j = np.indices((16, 16))
    levels = 3e-4 * 20.0 ** ((i // 4 + j // 4) % 2)
    rough = wh.EikonalMechanism.build(wh.PrivacyMap(levels, cell="500 m"), places="cells")
    assert rough.lowered.mean() < 0.9
    assert "map.smoothed('" in rough.account()
    smooth = wh.EikonalMechanism.build(
        wh.PrivacyMap(np.full((8, 8), 1e-3), cell="500 m"), places="cells"
    )
    assert "smoothed" not in smooth.account()


def test_a_saved_mechanism_gives_an_account_without_a_comparison(built, tmp_path):
    built.save(tmp_path / "map.npz")
    loaded = wh.load(tmp_path / "map.npz")
    assert "Chosen" not in loaded.account()
    assert "of the asked" in loaded.account()


def test_a_query_takes_no_prior():
    levels, density = city()
    with pytest.raises(InvalidInput, match="without a prior"):
        wh.EikonalMechanism.build(levels, query=density > 0.5, prior=density)


def test_it_says_where_drawn_reports_are_hardly_worth_it(built):
    """A coast of 3 nats, without a prior, against a wide city."""
    i, j = (np.indices((24, 24)) + 0.5) / 24
    levels = np.where(j + 0.08 * np.sin(7 * i) > 0.6, 3e-4, 3e-4 * 8 ** (1 - abs(2 * i - 1)))
    coast = wh.EikonalMechanism.build(wh.PrivacyMap(levels, cell="417 m"), places="cells")
    found = coast.built.comparison
    assert found is not None
    assert found.eikonal > 0.7 * found.exponential
    assert "hardly worth it" in coast.account()
    assert "hardly worth it" not in built.account()
