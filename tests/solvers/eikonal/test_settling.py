"""Rounds that lead to a certified law between cells, with few nodes and with many."""

from __future__ import annotations

import numpy as np
import pytest

from whereish.solvers.eikonal import settling
from whereish.solvers.eikonal.between import law_between, slopes_between
from whereish.solvers.geodesic.graph_metric import HORIZON
from whereish.solvers.geodesic.lanes import LIMIT

CELL = (1.0, 1.0)


def tracts(rows: int, cols: int) -> np.ndarray:
    i, j = np.mgrid[:rows, :cols]
    return np.where((i // 4 + j // 5) % 2, 0.5, 0.2) + 0.05 * np.sin(i / 3.0)


@pytest.mark.parametrize("finer", [False, True])
def test_with_many_nodes_the_quantum_takes_what_rounds_leave(monkeypatch, finer):
    eps = tracts(13, 14)
    few = law_between(eps, CELL, finer=finer)
    monkeypatch.setattr(settling, "_MANY", 64)
    many = law_between(eps, CELL, finer=finer)
    assert few.law.metric.quantum == HORIZON / LIMIT
    assert 0.97 * HORIZON / LIMIT < many.law.metric.quantum < HORIZON / LIMIT
    assert many.gradient_factor is not None
    assert 0.999 < many.gradient_factor <= 1.0
    proven = slopes_between(many, eps, CELL).factors
    assert proven.max() <= many.gradient_factor
    assert slopes_between(many, 0.99 * eps, CELL).factors.max() > 1.0
    # The same map, used about as well.
    used = (law.law.metric.weights[:-3, :-3, :2] * law.law.metric.quantum for law in (few, many))
    assert float(np.divide(*(part.mean() for part in used))) == pytest.approx(1.0, abs=0.01)


def noise(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.1, 1.2, (14, 14))


@pytest.mark.parametrize("seed", range(3))
def test_further_rounds_after_a_proof_lose_nothing(monkeypatch, seed):
    """A law of which a proof says more than points did is tried again, and the better is kept."""
    eps = noise(seed)
    monkeypatch.setattr(settling, "_MANY", 64)
    monkeypatch.setattr(settling, "_TRIES", 1)
    once = law_between(eps, CELL)
    monkeypatch.setattr(settling, "_TRIES", 4)
    monkeypatch.setattr(settling, "_WORTH", -1.0)
    tries = []
    correct = settling._State.correct

    def counted(state, proven):
        tries.append(float(proven.max()))
        correct(state, proven)

    monkeypatch.setattr(settling._State, "correct", counted)
    often = law_between(eps, CELL)
    assert len(tries) == 3
    assert often.gradient_factor <= 1.0
    used = [
        float(law.law.metric.weights[:-1, :-1, :2].mean()) * law.law.metric.quantum
        for law in (once, often)
    ]
    assert used[1] > 0.997 * used[0]


def test_shares_do_not_rise_above_what_edges_may_have():
    """At more than 4 nats a cell all edges were capped, and shares above that could not fall."""
    steep = (
        np.where(np.arange(5) % 2 == 0, 4.5, 9.0)[None],
        np.array([[2.661, 11.79, 3.23, 3.027], [10.171, 11.403, 7.305, 3.254]]),
    )
    for eps in steep:
        built = law_between(eps, CELL, frame=0)
        assert 0.98 < built.gradient_factor <= 1.0


def test_exact_sums_are_those_of_the_certified_law():
    """Rounds go on without them; the law that is returned has its own."""
    built = law_between(tracts(9, 10), CELL)
    law = built.law
    sums, _ = law.metric.exact_sums(law.weights, law.table, built.secrets)
    np.testing.assert_array_equal(sums, law.sums)


def test_many_nodes_have_a_higher_bar():
    assert settling.proof_bar(settling._MANY - 1) < settling.proof_bar(settling._MANY) < 1.0


def _state(eps, slopes):
    """A state of a search whose shares are the only thing that is known of its laws."""
    whole = settling.EdgeShares.whole((eps, eps))
    state = settling._State.__new__(settling._State)
    state.built, state.shares, state._solved, state._many = "law 0", whole, False, True
    taken = []

    def take(left, *, solve=True):
        taken.append(left)
        state.built, state.shares = f"law {len(taken)}", state.shares.times(left)

    found = iter(slopes)
    state._take, state._slopes = take, lambda whole: next(found)
    return state, taken


def _with_steep(size, share, slope=1.01):
    out = np.full((size, size, 5, 5), 0.99)
    out.reshape(size * size, 25)[: round(share * size * size)] = slope
    return out


def test_a_rise_that_pushes_squares_over_is_taken_back():
    """On a smooth map nearly all of eps is used at once: four rounds cost 5% of squared error."""
    state, taken = _state(20, [_with_steep(20, share) for share in (0.01, 0.005, 0.03, 0.0)])
    state.rise(4)
    assert state.built == "law 1"  # of the slopes of which fewer were steep than before and after
    assert len(taken) == 2


def test_rises_of_a_rough_map_go_on():
    """Where much is too steep, a few more steep squares in one round say nothing."""
    state, taken = _state(20, [_with_steep(20, share) for share in (0.9, 0.3, 0.35, 0.2)])
    state.rise(4)
    assert state.built == "law 4"
    assert len(taken) == 4


@pytest.mark.slow
def test_a_smooth_map_of_many_nodes_is_used_as_it_is():
    """Every steep side fell alone and pushed others over: 0.956 of a gradient's levels was used."""
    along = (np.arange(100) + 0.5) / 100
    eps = 12.0 * 8.0 ** (0.15 + 0.5 * along[None] + 0.35 * along[:, None]) / 100
    built = law_between(eps, CELL)
    inner = slice(built.frame, built.frame + 100)
    promised = built.promised[inner, inner, :2]
    used = built.law.metric.weights[inner, inner, :2] * built.law.metric.quantum
    assert float(np.mean(used / promised)) > 0.96
    assert built.gradient_factor <= 1.0
