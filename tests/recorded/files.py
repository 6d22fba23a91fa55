"""Saved mechanisms and a ledger, as commit 319ffc2 wrote them; today's code must load them.

``python -m recorded.files FOLDER`` (from ``tests/``) writes such files anew.
"""

from __future__ import annotations

import sys
from pathlib import Path

import whereish as wh
from whereish.publish.ledger.ledger import Charge

from recorded.samples import EPS, grid, prior, privacy_map, query

FOLDER = Path(__file__).with_name("files")


def write(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    wh.optimal_channel(grid(), prior(), epsilon=EPS).save(folder / "optimal.npz")
    globe = wh.Points([[2.35, 48.85], [2.36, 48.85], [2.35, 48.86]], wh.Sphere())
    wh.exponential_channel(globe, EPS).save(folder / "globe.npz")
    projected = wh.Plane.around(2.35, 48.85, "20 km")
    wh.exponential_channel(wh.Points(grid(), projected), EPS).save(folder / "projected.npz")
    wh.EikonalMechanism.build(privacy_map(), places="cells").save(folder / "map.npz")
    continuous = wh.EikonalMechanism.build(privacy_map(), places="bilinear")
    continuous.save(folder / "continuous.npz")
    query().save(folder / "query.npz")
    ledger = wh.open_ledger(folder / "ledger.sqlite", cap="0.1/m")
    ledger.charge([Charge("anna", EPS, 3), Charge("bert", EPS)], release="first")
    ledger.charge([Charge("anna", EPS)], release="second", pending=True)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
