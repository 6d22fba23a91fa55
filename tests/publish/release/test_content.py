"""Digests of what a job is asked with: other content is another job."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow.parquet as pq
import pytest
import shapely

import whereish as wh
from publish.release.jobs import PLAN, interrupted
from whereish.errors import (
    InvalidInput,
)
from whereish.publish.release import staging as staging_module
from whereish.publish.release.content import content_digest
from whereish.publish.rows.public_places import H3Cells, Roads, ToSites


def shifted(by: float):
    return lambda degrees: degrees + by


class Shift:
    """A remap with a state."""

    def __init__(self, by: float) -> None:
        self.by = by

    def __call__(self, degrees):
        return degrees + self.by


def road(y: float) -> shapely.LineString:
    return shapely.LineString([(2.0, y), (2.7, y)])


def site(lon: float, space=None) -> wh.Sites:
    return wh.Sites(wh.Points(np.array([[lon, 48.8]]), space or wh.Sphere()))


REMAPS = {
    "roads": (lambda: Roads([road(48.8)], 48.85), lambda: Roads([road(48.9)], 48.85)),
    "the latitude of roads": (lambda: Roads([road(48.8)], 48.8), lambda: Roads([road(48.8)], 48.9)),
    "more roads": (lambda: Roads([road(1)], 48), lambda: Roads([road(1), road(2)], 48)),
    "sites": (lambda: ToSites(site(2.3)), lambda: ToSites(site(2.4))),
    "cells": (lambda: H3Cells(8), lambda: H3Cells(9)),
    "what a function closes over": (lambda: shifted(0.1), lambda: shifted(0.2)),
    "the state of a callable": (lambda: Shift(0.1), lambda: Shift(0.2)),
    "an argument that is bound": (lambda: partial(shifted, 1), lambda: partial(shifted, 2)),
    "code": (lambda: lambda degrees: degrees, lambda: lambda degrees: -degrees),
}


MECHANISMS = {
    "decimals": (lambda: wh.GlobeLaplace("1/km"), lambda: wh.GlobeLaplace("1/km", decimals=3)),
    "planes": (
        lambda: wh.PlanarLaplace("1/km", plane=wh.Plane.around(2.3, 48.8, "40 km")),
        lambda: wh.PlanarLaplace("1/km", plane=wh.Plane.around(2.4, 48.8, "40 km")),
    ),
}


@pytest.mark.parametrize("what", MECHANISMS)
def test_mechanisms_have_the_digest_of_their_content(what):
    one, other = MECHANISMS[what]
    used = one()
    used.report([2.3, 48.8])
    assert content_digest(one()) == content_digest(used)
    assert content_digest(one()) != content_digest(other())


def test_an_interrupted_job_does_not_resume_with_another_mechanism(case, monkeypatch):
    """Of the same guarantee: the statement alone would not tell them apart."""
    source, output, ledger = case
    interrupted(case, monkeypatch, "rename_into_place", staging_module, options={"decimals": 3})
    with pytest.raises(InvalidInput, match="with other arguments"):
        wh.sanitize(source, output, ledger=ledger, **PLAN)
    options = {"decimals": 3}
    assert wh.sanitize(source, output, ledger=ledger, options=options, **PLAN).resumed


@pytest.mark.parametrize("what", REMAPS)
def test_remaps_have_the_digest_of_their_content(what):
    one, other = REMAPS[what]
    assert content_digest(one()) == content_digest(one())
    assert content_digest(one()) != content_digest(other())


def test_remaps_that_cannot_be_digested_differ_from_all():
    unknown = Shift(0.1)
    unknown.handle = (x for x in ())
    assert content_digest(unknown) != content_digest(unknown)


def test_an_interrupted_job_does_not_resume_with_other_roads(case, monkeypatch):
    source, output, ledger = case
    interrupted(
        case, monkeypatch, "rename_into_place", staging_module, remap=Roads([road(48.8)], 48.85)
    )
    with pytest.raises(InvalidInput, match="with other arguments"):
        wh.sanitize(source, output, ledger=ledger, remap=Roads([road(48.9)], 48.85), **PLAN)
    release = wh.sanitize(source, output, ledger=ledger, remap=Roads([road(48.8)], 48.85), **PLAN)
    assert release.resumed
    assert set(pq.read_table(output)["lat"].to_pylist()) == {48.8}
    # The exposure of a resumed release is that of the one which had drawn it.
    assert (release.exposure.reports, release.exposure.named) == (10, True)
    assert release.exposure.per_m == pytest.approx(0.01)
