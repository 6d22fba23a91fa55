"""A process that draws few reports never loads numba, and draws the very same ones."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np

import whereish as wh
from whereish.compiled import is_numba_loaded

DRAWS = 300
PROGRAMME = """
import json, sys
from test_few import draw
print(json.dumps([draw(), "numba" in sys.modules]))
"""
MANY = """
import sys
import whereish as wh
noise = wh.PlanarLaplace("1/200 m")
for _ in range(2000):
    noise.report_one((0.0, 0.0))
assert "numba" not in sys.modules
noise.report_one((0.0, 0.0))
assert "numba" in sys.modules
"""


def draw() -> list[list[list[float]]]:
    """Seeded reports of the noise that every command and every call of `perturb` starts with."""
    places = np.array([[2.33, 48.85], [179.99999, 0.0], [0.0, 90.0], [-180.0, -89.99]])
    globe = np.tile(places, (DRAWS // 4, 1))
    plane = np.tile([[0.0, 0.0], [1e6, -3.5]], (DRAWS // 2, 1))
    cases = [
        (wh.GlobeLaplace("ln(4)/200 m"), globe),
        (wh.GlobeLaplace("1/20000 km", decimals=2), globe),  # by rejection from the whole sphere
        (wh.PlanarLaplace("ln(4)/200 m"), plane),
        (wh.ManhattanLaplace("ln(4)/200 m"), plane),
    ]
    return [
        mechanism.report(secrets, rng=wh.SeededRandomness(seed)).coordinates.tolist()
        for seed, (mechanism, secrets) in enumerate(cases)
    ]


def run(programme: str, **kind: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", programme], capture_output=True, text=True, check=True, **kind
    )
    return done.stdout


def test_balls_alone_draw_what_the_kernels_draw():
    import numba  # noqa: F401

    assert is_numba_loaded()
    reports, loaded = json.loads(run(PROGRAMME, cwd=str(__file__).rpartition("/")[0]))
    assert not loaded
    assert reports == draw()


def test_after_two_thousand_draws_the_kernel_is_loaded():
    run(MANY)
