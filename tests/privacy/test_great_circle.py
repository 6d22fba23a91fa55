"""Great-circle distances are as accurate as certificates believe, everywhere."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import arb, ctx

import whereish as wh
from whereish.privacy.metric import Sum
from whereish.privacy.norms import Euclidean, GreatCircle, coordinate_error
from whereish.privacy.tuples import TupleSum
from whereish.space.sphere import DISTANCE_ERROR, RADIUS_M, great_circle_m
from whereish.units import Epsilon

N = 1500
UNIT = 2.0**-53


def exact_m(x, y):
    """The distance as a ball of some hundred digits, by a formula of its own."""
    lon1, lat1, lon2, lat2 = (arb(float(v)) for v in (*x, *y))
    level = (lat1 / 180).cos_pi() * (lat2 / 180).cos_pi()
    a = ((lat1 - lat2) / 360).sin_pi() ** 2 + level * ((lon1 - lon2) / 360).sin_pi() ** 2
    b = ((lat1 + lat2) / 360).sin_pi() ** 2 + level * ((lon1 - lon2) / 360).cos_pi() ** 2
    return 2 * arb.atan2(a.sqrt(), b.sqrt()) * arb(RADIUS_M)


def families():
    draw = np.random.default_rng(1)

    def anywhere(low=-180.0, high=180.0):
        lat = np.degrees(np.arcsin(draw.uniform(-1, 1, N)))
        return np.column_stack([draw.uniform(low, high, N), lat])

    def polar():
        return np.column_stack([draw.uniform(-360, 360, N), 90 - 10.0 ** draw.uniform(-14, 0, N)])

    x, tiny = anywhere(), 10.0 ** draw.uniform(-16, 1, (N, 2)) * draw.choice([-1, 1], (N, 2))
    close = np.clip(x + tiny, [-360, -90], [360, 90])
    opposite = np.column_stack([x[:, 0] + 180 * draw.choice([-1, 1], N), -x[:, 1]])
    west = np.column_stack([180 - 10.0 ** draw.uniform(-13, 0, N), draw.uniform(-89, 89, N)])
    east = np.column_stack([-180 + 10.0 ** draw.uniform(-13, 0, N), west[:, 1]])
    turn = np.array([360.0, 0.0])
    a, b = polar(), polar()
    return {
        "anywhere": (anywhere(-360, 360), anywhere(-360, 360)),
        "close": (x, close),
        "at one pole": (a, b),
        "at the other": (a * [1, -1], b * [1, -1]),
        "from pole to pole": (a, b * [1, -1]),
        "antipodes": (x, np.clip(opposite + tiny, [-360, -90], [360, 90])),
        "across the antimeridian": (west, east),
        "the same, named beyond it": (west, east + turn),
        "beyond on both sides": (west - turn, east + turn),
        "on the equator": (x * [1, 0], close * [1, 0]),
    }


@pytest.mark.parametrize("family", families())
def test_distances_are_within_their_proven_error(family):
    """Fault 9: near a pole, and with longitudes beyond 180, all digits were lost."""
    x, y = families()[family]
    got, off = great_circle_m(x, y), 0.0
    np.testing.assert_array_equal(got, great_circle_m(y, x))
    with ctx.workprec(400):
        for i in range(N):
            want = exact_m(x[i], y[i])
            if got[i] == 0:
                assert want < 1e-150
            else:
                off = max(off, float(abs(arb(float(got[i])) / want - 1)))
    assert off <= DISTANCE_ERROR
    assert off <= 8 * UNIT, "the library's functions are far better here than is assumed"


def test_coordinate_errors_follow_the_metric():
    far = np.array([1e3])
    sphere, plane = (float(coordinate_error(m, far)[0]) for m in (GreatCircle(), Euclidean()))
    assert sphere == DISTANCE_ERROR > plane == 2.0**-48
    for metric in (
        0.1 * GreatCircle(),
        Sum((GreatCircle(), Euclidean())),
        TupleSum(GreatCircle(), 3),
    ):
        assert coordinate_error(metric, far)[0] > DISTANCE_ERROR


@pytest.mark.parametrize("lat", [90 - 1e-9, 90 - 3e-11, -90 + 1e-7])
def test_a_certified_channel_at_a_pole_keeps_true_distances(lat):
    """Fault 9: a channel certified at 1 had a true factor of 1.0000007."""
    draw = np.random.default_rng(4)
    epsilon = 1e3
    for _ in range(12):
        sites = np.column_stack([draw.uniform(-180, 180, 2), [lat, lat]])
        channel = wh.tight_channel(wh.Points(sites, wh.Sphere()), Epsilon(epsilon))
        with ctx.workprec(200):
            promised = arb(epsilon) * exact_m(*sites)
            for z in range(2):
                a, b = (arb(int(w)) for w in channel.weights[:, z])
                assert abs((a / b).log()) <= promised
    assert math.isfinite(channel.verify().upper)
