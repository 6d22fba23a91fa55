"""(alpha, delta)-usefulness: one function, each kind of mechanism against its own law."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import whereish as wh
from instances import peaked
from whereish.audit import usefulness
from whereish.errors import InvalidInput


def test_geometric_noise_by_its_table():
    noise = wh.TruncatedGeometric(wh.Values(1, 6), 0.6)
    for alpha in range(7):
        near = np.abs(np.subtract.outer(np.arange(7), np.arange(7))) <= alpha
        found = usefulness(noise, alpha)
        assert found.chance == pytest.approx((noise.matrix * near).sum(axis=1).min())
        assert found.basis == "exact"
    assert usefulness(wh.TwoSidedGeometric(1, 0.6), 2).chance == pytest.approx(
        sum((1 - np.exp(-0.6)) / (1 + np.exp(-0.6)) * np.exp(-0.6 * abs(n)) for n in range(-2, 3))
    )
    with pytest.raises(InvalidInput, match="units of the values"):
        usefulness(noise, "2 m")


def test_cubes_by_summing_their_law():
    mechanism = wh.CubeGeometric(wh.Records(wh.Values("1/2", 40), 2), 1.0)
    a = float(mechanism.ratio)
    far = range(-60, 61)
    law = {v: a ** max(map(abs, v)) for v in itertools.product(far, repeat=2)}
    total = sum(law.values())
    for alpha in (0, 0.5, 1.2, 3):
        held = sum(p for v, p in law.items() if max(map(abs, v)) <= 2 * alpha) / total
        assert usefulness(mechanism, Fraction(alpha)).chance == pytest.approx(held)


def test_channels_by_their_rows():
    places, _ = peaked(3, 4)
    channel = wh.exponential_channel(places, "1/km")
    for alpha in ("1 m", "700 m", "2 km", "20 km"):
        rows = []
        for x, row in zip(channel.secrets.coordinates, channel.matrix, strict=True):
            near = np.hypot(*(channel.reports.coordinates - x).T) <= wh.Length.of(alpha).m
            rows.append(row[near].sum())
        assert usefulness(channel, alpha).chance == pytest.approx(min(rows))
    assert usefulness(channel, "20 km").is_useful(1e-9)


@pytest.mark.parametrize(
    "noise",
    [
        wh.PlanarLaplace("0.01/m"),
        wh.GlobeLaplace("0.01/m"),
        wh.ManhattanLaplace("0.01/m"),
        wh.CircularNoise(([0, 100, 200], [4, 2, 1])),
    ],
    ids=lambda noise: type(noise).__name__,
)
def test_noise_is_as_useful_as_samples_of_it(noise):
    alpha = noise.quantile(0.8)
    found = usefulness(noise, alpha)
    assert found.chance == pytest.approx(0.8, abs=2e-3)
    assert found.is_useful(0.2 + 2e-3)
    assert not found.is_useful(0.19)
    sampled = usefulness(noise, alpha, at=[[0.0, 0.0]], rng=wh.SeededRandomness(4))
    assert sampled.basis == "estimated"
    assert sampled.chance >= 0.8 - 2e-2  # five standard errors of 100,000 draws
    if not isinstance(noise, wh.ManhattanLaplace):  # its radii are in city blocks: a lower bound
        assert sampled.chance <= 0.8 + 2e-2


def test_a_map_by_its_distributions():
    rng = np.random.default_rng(1)
    levels = wh.PrivacyMap(1e-3 * (1 + rng.random((6, 5))), "500 m")
    mechanism = wh.EikonalMechanism.build(levels, places="cells")
    reports = mechanism.reports.centres()
    cells = mechanism.map.raster.centres()
    held = []
    for cell in cells:
        law = mechanism.distribution(cell).ravel()
        held.append(law[np.hypot(*(reports - cell).T) <= 1200].sum())
    assert usefulness(mechanism, "1200 m").chance == pytest.approx(min(held))
    some = usefulness(mechanism, "1200 m", at=cells[:3])
    assert some.chance == pytest.approx(min(held[:3]))
    assert some.secrets == "3 places"


def test_remapped_mechanisms_are_sampled():
    mechanism = wh.PlanarLaplace("0.01/m") >> wh.nearest_remap([[0.0, 0.0], [50.0, 0.0]])
    with pytest.raises(InvalidInput, match="at="):
        usefulness(mechanism, "60 m")
    found = usefulness(mechanism, "60 m", at=[[0.0, 0.0]], samples=2000, rng=wh.SeededRandomness(1))
    assert 0.98 < found.chance < 1
    nothing = usefulness(mechanism, "1 m", at=[[9e3, 0.0]], samples=100, rng=wh.SeededRandomness(1))
    assert nothing.chance == 0
    for wrong in (200, "-1 m"):
        with pytest.raises(InvalidInput):
            usefulness(wh.PlanarLaplace("0.01/m"), wrong)
    with pytest.raises(InvalidInput, match="report secrets"):
        usefulness(object(), "1 m")
