import numpy as np
import pytest

import whereish as wh
from whereish.data.visits import Visits
from whereish.errors import InvalidInput

RASTER = wh.Raster(2, 3, (100.0, 100.0))
TIMES = np.array(
    ["2024-05-01T07:05", "2024-05-01T07:50", "2024-05-01T12:00", "2024-05-02T03:00"],
    dtype="datetime64[m]",
)


def test_one_visit_per_user_place_and_hour():
    spots = np.array([[50, 50], [60, 40], [50, 50], [150, 50]])
    visits = Visits.of(spots, RASTER, users=["a", "a", "a", "b"], times=TIMES)
    assert visits.counts().tolist() == [2, 1, 0, 0, 0, 0]
    plain = Visits.of(spots, RASTER, users=["a"] * 4, times=TIMES, once_per_hour=False)
    assert plain.counts().tolist() == [3, 1, 0, 0, 0, 0]
    np.testing.assert_allclose(visits.prior(), [2 / 3, 1 / 3, 0, 0, 0, 0])
    by_two = Visits.of(spots, RASTER, users=["a", "b", "a", "b"], times=TIMES)
    assert by_two.counts().tolist() == [3, 1, 0, 0, 0, 0], "two users count twice"


def test_times_of_day_partition():
    spots = np.full((4, 2), 50.0)
    visits = Visits.of(spots, RASTER, users=[1, 2, 3, 4], times=TIMES)
    counts = [len(visits.during(p)) for p in ("morning", "afternoon", "night")]
    assert counts == [2, 1, 1]
    with pytest.raises(InvalidInput, match="period must be"):
        visits.during("noon")


def test_outside_is_left_out_and_counted():
    visits = Visits.of([[50, 50], [5000, 50]], RASTER, users=[1, 2], times=TIMES[:2])
    assert (len(visits), visits.outside) == (1, 1)
    with pytest.raises(InvalidInput, match="no visits"):
        visits.by([7]).prior()
    near = Visits.of([[5000, 50]], RASTER.sites(), users=[1], times=TIMES[:1])
    assert near.place.tolist() == [2]


def test_popular_is_by_users_not_by_visits():
    """One user's hundred visits to place 0 weigh less than two users' lists with place 4."""
    hours = np.datetime64("2024-05-01T00") + np.arange(103).astype("timedelta64[h]")
    centres = RASTER.centres()
    spots = np.vstack([np.repeat(centres[:1], 100, axis=0), centres[[4, 4, 5]]])
    users = ["a"] * 100 + ["b", "c", "c"]
    visits = Visits.of(spots, RASTER, users=users, times=hours)
    assert visits.popular(1, top=1).tolist() == [4]
    assert visits.popular(2, top=1).tolist() == [0, 4]
    assert visits.popular(6).tolist() == [0, 4, 5]


def test_bad_input():
    with pytest.raises(InvalidInput, match="equally many"):
        Visits.of([[50, 50]], RASTER, users=[1, 2], times=TIMES[:1])
    with pytest.raises(InvalidInput, match="times must be"):
        Visits.of([[50, 50]], RASTER, users=[1], times=["not a time"])


def test_new_york_check_ins(data_file):
    import pyarrow.parquet as pq

    table = pq.read_table(data_file("gowalla_nyc_checkins.parquet"))
    names = {name.lower(): name for name in table.column_names}
    lon, lat = (table[names[key]].to_numpy() for key in ("lon", "lat"))
    when = next(name for key, name in names.items() if "time" in key or "date" in key)
    user = next(name for key, name in names.items() if "user" in key or key == "uid")
    box = wh.Box(-74.05, 40.68, -73.9, 40.82)
    plane = wh.Plane.projected("EPSG:32618", box)
    inside = box.contains(np.c_[lon, lat])
    points = plane.from_degrees(lon[inside], lat[inside])
    corners = plane.from_degrees([-74.0, -73.95], [40.70, 40.76]).coordinates
    raster = wh.Raster.over(wh.Box(*corners[0], *corners[1]), "658 m", plane)
    times = table[when].to_numpy().astype("datetime64[s]")[inside]
    visits = Visits.of(points, raster, users=table[user].to_numpy()[inside], times=times)
    assert len(visits) > 10_000
    chosen = visits.popular(50)
    assert len(chosen) == 50
    prior = visits.prior()[chosen]
    assert prior.sum() > 0.5, "the fifty most popular of the cells hold most visits"
    assert sum(len(visits.during(p)) for p in ("morning", "afternoon", "night")) == len(visits)
