"""Well-known binary: points of every dialect, and what is no point."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from whereish.errors import InvalidInput
from whereish.publish.formats.wkb import points_from_wkb, wkb_from_points


@given(st.lists(st.tuples(st.floats(-180, 180), st.floats(-90, 90), st.integers(0, 5)), min_size=1))
@settings(max_examples=50)
def test_wkb_of_every_dialect(rows):
    made = []
    for lon, lat, dialect in rows:
        point = shapely.Point(lon, lat, 7.0) if dialect in (1, 3) else shapely.Point(lon, lat)
        if dialect == 4:
            point = shapely.set_srid(point, 4326)
        flavor = "iso" if dialect == 3 else "extended"
        order = 0 if dialect == 5 else 1
        srid = dialect == 4
        made.append(shapely.to_wkb(point, byte_order=order, flavor=flavor, include_srid=srid))
    column = pa.array([b"before", *made], pa.binary()).slice(1)
    expected = np.array([[lon, lat] for lon, lat, _ in rows])
    assert np.array_equal(points_from_wkb(column, "g"), expected)
    ours = wkb_from_points(expected[:, 0].copy(), expected[:, 1].copy())
    assert np.array_equal(shapely.get_coordinates(shapely.from_wkb(ours.to_pylist())), expected)


@pytest.mark.parametrize("raw", [b"", b"\1", b"\2" * 21, b"\1\2" + b"\0" * 30, b"\1" * 21])
def test_wkb_that_is_no_point(raw):
    with pytest.raises(InvalidInput, match="must hold points"):
        points_from_wkb(pa.array([raw], pa.binary()), "g")
