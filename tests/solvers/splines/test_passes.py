"""Passes over shares of the reports: the same whatever the threads, and nothing is left out."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.map_cities import synthetic
from whereish.mechanisms.maps.eikonal import EikonalMechanism
from whereish.solvers.splines import report_blocks as blocks
from whereish.solvers.splines.passes import over_blocks
from whereish.solvers.splines.slopes import points_between, slopes_between


@pytest.fixture(scope="module")
def mechanism() -> EikonalMechanism:
    return EikonalMechanism.build(synthetic("tracts, roughness 0.3", 30, (20.0, 60.0)))


def test_shares_hold_every_report_once(mechanism):
    built = mechanism.built
    shares = blocks.report_shares(built)
    assert len(shares) > 1
    parts = [sum(_masses(block) for block in share) for share in shares]
    whole = sum(_masses(block) for _, block in blocks.report_blocks(built))
    np.testing.assert_allclose(sum(parts), whole, rtol=1e-5)
    assert all((part.sum() < 0.5 * whole.sum()) for part in parts)


def _masses(block):
    """Of every node, over the block's reports; what is beyond their reach may be anything."""
    _, E, top = block
    return np.where(top > -np.inf, np.where(top[:, None] > -np.inf, E, 0.0).sum(axis=1), 0.0)


@pytest.mark.parametrize("threads", ["1", "2", "5"])
def test_slopes_do_not_depend_on_threads(mechanism, threads, monkeypatch):
    eps, sides = mechanism.map.plane_levels(1.0), mechanism.map.sides
    monkeypatch.setenv("WHEREISH_THREADS", "3")
    points = points_between(mechanism.built, eps, sides)
    proven = slopes_between(mechanism.built, eps, sides).factors
    monkeypatch.setenv("WHEREISH_THREADS", threads)
    assert np.array_equal(points_between(mechanism.built, eps, sides), points)
    assert np.array_equal(slopes_between(mechanism.built, eps, sides).factors, proven)


def test_one_share_proves_as_much_as_several(mechanism, monkeypatch):
    eps, sides = mechanism.map.plane_levels(1.0), mechanism.map.sides
    several = slopes_between(mechanism.built, eps, sides).factors
    monkeypatch.setattr(blocks, "_SHARES", 1)
    np.testing.assert_allclose(
        slopes_between(mechanism.built, eps, sides).factors, several, rtol=1e-4
    )


def test_without_blocks_there_is_what_nothing_was_done_with():
    assert over_blocks([], list, lambda block, own: own.append(block)) == [[]]
