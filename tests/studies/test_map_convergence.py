"""The discrete mechanism and its distances against the continuous ones, cell by cell smaller."""

from __future__ import annotations

import numpy as np
import pytest

from whereish.privacy.maps.stencil import stencil_factor
from whereish.studies import map_convergence
from whereish.studies.map_convergence import distance_error, law_error, orders, stencil_limit


def test_the_law_converges_to_planar_laplace_but_for_the_stencil():
    rows = [law_error(cells) for cells in (17, 33, 65)]
    to_laplace, to_limit = [row.to_laplace for row in rows], [row.to_limit for row in rows]
    assert (np.diff(to_laplace) < 0).all()
    assert (orders([row.side for row in rows], to_limit) > 1.2).all()
    limit = stencil_limit(32)
    assert limit < 0.005
    assert stencil_limit(16) > 2 * limit
    assert to_laplace[-1] < limit + to_limit[-1]  # the triangle inequality
    assert to_laplace[-1] < 0.006


@pytest.mark.parametrize("levels", ["constant", "linear"])
def test_distances_converge_to_closed_forms(levels):
    rows = [distance_error(cells, levels) for cells in (41, 81, 161)]
    assert (orders([row.side for row in rows], [row.marching for row in rows]) > 0.9).all()
    assert rows[-1].marching < 0.03
    for row in rows:
        assert 0.99 < row.least < row.largest < stencil_factor(32, (1.0, 1.0)) + 1e-4
    coarse = distance_error(81, levels, neighbours=8)
    assert stencil_factor(32, (1.0, 1.0)) < coarse.largest < stencil_factor(8, (1.0, 1.0)) + 1e-4


def test_orders_of_a_power():
    sides = [1.0, 0.5, 0.125]
    np.testing.assert_allclose(orders(sides, [3 * h**1.5 for h in sides]), 1.5)


def test_the_study_prints_orders_and_draws(tmp_path, capsys, monkeypatch):
    small = {"law_table": (9, 17), "distance_table": (21, 41)}
    for name, sizes in small.items():
        table = getattr(map_convergence, name)
        monkeypatch.setattr(map_convergence, name, lambda what, t=table, s=sizes: t(what, s))
    path = tmp_path / "figure.png"
    map_convergence.main(str(path))
    assert path.read_bytes().startswith(b"\x89PNG")
    said = capsys.readouterr().out
    assert said.count(" order") == 4
    assert said.count(f"factor of the stencil: {stencil_factor(32, (1.0, 1.0)):.5f}") == 2
