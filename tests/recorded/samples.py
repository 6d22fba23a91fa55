"""Seeded draws of every mechanism: the order of random words must not change unnoticed.

``python -m recorded.samples tests/recorded/samples.json`` (from ``tests/``) writes them; the
file in the repository was written at commit 319ffc2, before the modules moved.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import whereish as wh
from whereish.randomness import Randomness

EPS = wh.Epsilon(0.01)
RECORDED = Path(__file__).with_name("samples.json")


def grid(side: int = 3, step: float = 100.0) -> np.ndarray:
    x, y = np.meshgrid(np.arange(side) * step, np.arange(side) * step)
    return np.column_stack([x.ravel(), y.ravel()])


def prior(count: int = 9) -> np.ndarray:
    weights = 1.0 + np.arange(count) % 4
    return weights / weights.sum()


def metres(count: int = 40) -> np.ndarray:
    return np.random.default_rng(1).uniform(-2000, 2000, (count, 2))


def degrees(count: int = 40) -> np.ndarray:
    return np.random.default_rng(2).uniform([-180, -89], [180, 89], (count, 2))


def privacy_map() -> wh.PrivacyMap:
    rows, columns = np.mgrid[:8, :9]
    return wh.PrivacyMap(1e-3 * (1.0 + 0.2 * np.sin(rows) * np.cos(columns)), "500 m")


def in_map(count: int = 40) -> np.ndarray:
    return np.random.default_rng(3).uniform([100, 100], [4000, 3500], (count, 2))


def of_channel(channel: wh.Channel, rng: Randomness) -> Any:
    secrets = channel.secrets.coordinates[np.arange(60) % len(channel.secrets)]
    return channel.report(secrets, rng=rng)


def trace(rng: Randomness) -> Any:
    walk = np.cumsum(np.random.default_rng(4).normal(0, 30, (60, 2)), axis=0)
    return (
        wh.PredictiveMechanism(wh.FixedUtility("500 m", tests="every"), wh.PlanarLaplace)
        .report(walk, rng=rng)
        .reports
    )


def profiles(kind: str) -> Callable[[Randomness], Any]:
    level = wh.PlaceLevel.of_sites(
        "squares", wh.Sites(wh.Points(grid(4), wh.Plane.metres())), wh.Box(-50, -50, 350, 350)
    )
    user, site = np.divmod(np.arange(96), 16)
    weight = np.random.default_rng(5).poisson(1.5, 96)
    made = wh.Profiles.counted(level, 6, user, site, weight)
    return lambda rng: getattr(wh, kind)(level, 1.0).publish(made, rng=rng).profiles.table(0, 6)


def samplers() -> dict[str, Callable[[Randomness], Any]]:
    """Every way to draw, by name: from a source of words to numbers."""
    plane = wh.Plane.around(2.35, 48.85, "20 km")
    records = wh.Records(wh.Values(1, 10), 4)
    return {
        "planar-laplace": lambda rng: wh.PlanarLaplace(EPS).report(metres(), rng=rng),
        "planar-laplace-fine": lambda rng: wh.PlanarLaplace(EPS, resolution="1 mm").report(
            metres(), rng=rng
        ),
        "globe-laplace": lambda rng: wh.GlobeLaplace(EPS).report(degrees(), rng=rng),
        "globe-laplace-7": lambda rng: wh.GlobeLaplace(EPS, decimals=7).report(degrees(), rng=rng),
        "globe-laplace-wide": lambda rng: wh.GlobeLaplace("1/5000 km").report(degrees(), rng=rng),
        "manhattan-laplace": lambda rng: wh.ManhattanLaplace(EPS).report(metres(), rng=rng),
        "laplace-1d": lambda rng: wh.Laplace1D(EPS).report(metres()[:, :1], rng=rng),
        "circular": lambda rng: circular().report(metres(), rng=rng),
        "optimal-circular": lambda rng: wh.OptimalCircular(
            wh.Distinguishability.location("1 km", 2.0), resolution="60 m"
        ).report(metres(), rng=rng),
        "projected": lambda rng: wh.PlanarLaplace(EPS, plane=plane).report(metres(), rng=rng),
        "optimal-channel": lambda rng: of_channel(
            wh.optimal_channel(grid(), prior(), epsilon=EPS), rng
        ),
        "exponential-channel": lambda rng: of_channel(
            wh.exponential_channel(grid(), epsilon=EPS), rng
        ),
        "laplace-channel": lambda rng: of_channel(wh.laplace_channel(grid(), EPS), rng),
        "tight-channel": lambda rng: of_channel(wh.tight_channel(grid(), epsilon=EPS), rng),
        "cloaking-channel": lambda rng: of_channel(
            wh.cloaking_channel(grid(), [0] * 4 + [1] * 5), rng
        ),
        "opt-priv-channel": lambda rng: of_channel(
            wh.opt_priv_channel(grid(), prior(), most_loss="80 m"), rng
        ),
        "eikonal-continuous": lambda rng: wh.EikonalMechanism.build(
            privacy_map(), places="bilinear"
        ).report(in_map(), rng=rng),
        "eikonal-query": lambda rng: query().report(in_map(), rng=rng),
        "eikonal-cells": lambda rng: wh.EikonalMechanism.build(
            privacy_map(), places="cells"
        ).report(in_map(), rng=rng),
        "two-sided-geometric": lambda rng: wh.TwoSidedGeometric("1/2", 1.0).report(
            np.arange(40.0)[:, None] / 2, rng=rng
        ),
        "truncated-geometric": lambda rng: wh.TruncatedGeometric(wh.Values(1, 10), 0.5).report(
            np.arange(40.0)[:, None] % 11, rng=rng
        ),
        "cube-geometric": lambda rng: wh.CubeGeometric(records, 0.5).report(
            np.arange(40.0).reshape(10, 4) % 11, rng=rng
        ),
        "trace": trace,
        "pri-location": profiles("PriLocation"),
        "naive-profiles": profiles("NaiveProfiles"),
    }


def query() -> wh.EikonalQuery:
    districts = np.add.outer(np.arange(8) // 3, np.arange(9) // 4)
    return wh.EikonalQuery.build(privacy_map(), districts)


def circular() -> wh.CircularNoise:
    return wh.CircularNoise(lambda r: math.exp(-r / 100), reach="2 km")


def drawn(name: str) -> list[Any]:
    values = samplers()[name](wh.SeededRandomness(7))
    return np.asarray(values, float).round(9).tolist()


if __name__ == "__main__":
    names = sorted(samplers())
    Path(sys.argv[1]).write_text(json.dumps({name: drawn(name) for name in names}, indent=0) + "\n")
