"""Mechanisms that start from what people know: an error, a radius, a level."""

from __future__ import annotations

import math

import numpy as np
import pytest

from whereish.errors import InvalidInput
from whereish.mechanisms.registry import REGISTRY

from contract.cases import CALIBRATED


@pytest.mark.parametrize("name", CALIBRATED)
@pytest.mark.parametrize("length", [50.0, 300.0, 20_000.0])
def test_the_error_asked_for_is_the_error_stated(name, length):
    make = REGISTRY[name].make
    assert make.with_mean_error(f"{length} m").mean_error.m == pytest.approx(length, rel=1e-6)
    assert make.with_quantile(0.95, f"{length} m").quantile(0.95).m == pytest.approx(
        length, rel=1e-6
    )


@pytest.mark.parametrize("name", CALIBRATED)
def test_a_level_within_a_radius(name):
    mechanism = REGISTRY[name].make.with_level(math.log(4), "200 m")
    assert mechanism.guarantee.metric.factor == pytest.approx(math.log(4) / 200, rel=1e-12)


@pytest.mark.parametrize("name", CALIBRATED)
def test_quantiles_grow(name):
    mechanism = REGISTRY[name].make("0.01/m")
    radii = [mechanism.quantile(p).m for p in np.linspace(0, 0.999, 30)]
    assert (np.diff(radii) > 0).all()
    for bad in (-0.1, 1.0, 1.5, math.nan, "0.5"):
        with pytest.raises(InvalidInput, match="probability"):
            mechanism.quantile(bad)
