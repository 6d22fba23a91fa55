"""Reports of continuous places: where the outermost are told, by the law of their nodes."""

from __future__ import annotations

import numpy as np
import pytest

import whereish as wh
from whereish.solvers.eikonal import settling
from whereish.solvers.eikonal.between import slopes_between


def flat(shape: tuple[int, int] = (6, 7), per_m: float = 0.01) -> wh.PrivacyMap:
    return wh.PrivacyMap(np.full(shape, per_m), cell="100 m")


@pytest.mark.parametrize(
    ("options", "inner"),
    [({"frame": 0}, [100.0, 200.0, 300.0, 400.0, 500.0]), ({"frame": 0, "finer": True}, None)],
)
def test_the_outermost_reports_are_told_inside_and_tell_their_node(options, inner):
    mechanism = wh.EikonalMechanism.build(flat(), **options)
    told = mechanism.reports.centres()
    rows, columns = mechanism.reports.shape
    x, y = told.reshape(rows, columns, 2).transpose(2, 0, 1)
    assert (x[:, 0] == 43.75).all()
    assert (x[:, -1] == 700 - 43.75).all()
    assert (y[0] == 43.75).all()
    assert (y[-1] == 600 - 43.75).all()
    between = inner or (25.0 + 50.0 * np.arange(1, rows - 1)).tolist()
    assert y[1:-1, 0].tolist() == between
    np.testing.assert_array_equal(mechanism.reports.locate(told), np.arange(len(told)))


def test_reports_are_the_told_places_by_the_law_of_their_nodes(rng):
    mechanism = wh.EikonalMechanism.build(flat(), frame=0)
    place = np.array([[10.0, 20.0]])
    drawn = mechanism.report(np.repeat(place, 40_000, axis=0), rng=rng).coordinates
    which = mechanism.reports.locate(drawn)
    np.testing.assert_array_equal(drawn, mechanism.reports.centres()[which])
    law = mechanism.distribution(place).ravel()
    shares = np.bincount(which, minlength=len(law)) / len(drawn)
    assert np.abs(shares - law).sum() < 0.05
    errors = ((mechanism.reports.centres() - place) ** 2).sum(axis=1)
    assert ((drawn - place) ** 2).sum(axis=1).mean() == pytest.approx(law @ errors, rel=0.05)


def test_it_lowers_the_error_and_no_remap_loses_by_it():
    mechanism = wh.EikonalMechanism.build(flat((12, 12)), frame=0)
    nodes = mechanism.reports
    plain = wh.Raster(nodes.rows, nodes.columns, nodes.cell, nodes.origin, nodes.plane)
    at_nodes = wh.Points(plain.centres(), mechanism.space)
    assert mechanism.mse() < 0.96 * mechanism.mse(remap=lambda reports: at_nodes)
    remapped = mechanism.posterior_mean()
    assert mechanism.mse(remap=remapped) < mechanism.mse()
    told = remapped(wh.Points(nodes.centres(), mechanism.space)).coordinates
    assert len(np.unique(told.round(6), axis=0)) == len(nodes)  # no two nodes are taken for one


def test_reports_in_a_frame_and_along_a_line_are_nodes():
    framed = wh.EikonalMechanism.build(flat((12, 12)), frame=2).reports
    assert framed.centres()[0].tolist() == [-200.0, -200.0]
    line = wh.EikonalMechanism.build(flat((1, 6))).reports.centres()
    assert line[:, 1].tolist() == [50.0] * 7
    assert line[[0, 1, -1], 0].tolist() == [43.75, 100.0, 600 - 43.75]


def test_a_file_that_was_proven_more_sharply_is_read(tmp_path, monkeypatch):
    """As files of many nodes of before: what is bounded less sharply now must not refuse them."""
    for seed in range(20):  # which maps are such depends on the last bits
        rng = np.random.default_rng(seed)
        levels = 1e-3 * np.exp(0.3 * rng.normal(size=(5, 5)))
        mechanism = wh.EikonalMechanism.build(wh.PrivacyMap(levels, "500 m"))
        eps, sides = mechanism.map.plane_levels(1.0), mechanism.map.sides
        bounds = slopes_between(mechanism.built, eps, sides, bar=settling._MANY_BAR).factors
        if bounds.max() > mechanism.factor:
            break
    assert bounds.max() > mechanism.factor
    mechanism.save(tmp_path / "sharp.npz")
    monkeypatch.setattr(settling, "_MANY", 1)
    read = wh.load(tmp_path / "sharp.npz")
    assert read.factor <= mechanism.factor


def test_a_smooth_map_of_many_small_cells_needs_no_rounds():
    """Its first law is certified once the quantum falls by what is left, and uses the map."""
    i, j = np.mgrid[:92, :92]
    levels = 0.0018 * (1 + 0.2 * np.sin(i / 30) * np.cos(j / 25))
    rounds: list[int] = []
    mechanism = wh.EikonalMechanism.build(
        wh.PrivacyMap(levels, "100 m"), progress=lambda number, _: rounds.append(number)
    )
    assert mechanism.built.used.size >= settling._MANY
    assert set(rounds) == {1}
    assert 0.999 < mechanism.factor <= 1.0
    assert mechanism.mse() < 1.15 * float((6.0 / levels**2).mean())  # that of planar Laplace
