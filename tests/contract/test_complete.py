"""No public mechanism escapes the contract."""

from __future__ import annotations

import inspect
import typing

import pytest

import whereish as wh
from whereish.errors import InvalidInput
from whereish.mechanisms.channels.channel import Channel
from whereish.mechanisms.registry import REGISTRY, mechanism_named

from contract.cases import CALIBRATED, CHANNELS, DENSITIES, FINITE, MECHANISMS, OTHERS, example

MADE_BY_OTHERS = {
    "AsyncClient",
    "Channel",
    "Client",
    "Mechanism",
    "OptimalChannel",
    "bayesian_remap",
}
"""No mechanisms of their own: a protocol, what functions return, a channel from a channel, and
clients that ask a service for its reports."""
OWN_LAW_TESTS = {"between-sites", "cube-geometric", "eikonal", "two-sided-geometric"}
"""Neither a density nor a table of all rows: laws in tests/mechanisms/{maps,records}."""
PUBLISHERS = {"NaiveProfiles", "PooledProfiles", "PriLocation"}
"""They publish tables of counts, not reports of places: tests/publish/profiles."""


def makes_a_channel(value: object) -> bool:
    if not inspect.isfunction(value):
        return False
    made = typing.get_type_hints(value).get("return")
    return isinstance(made, type) and issubclass(made, Channel)


def is_a_mechanism(value: object) -> bool:
    return isinstance(value, type) and callable(getattr(value, "report", None))


def test_every_public_mechanism_is_registered():
    public = {name: getattr(wh, name) for name in wh.__all__}
    found = {
        name for name, value in public.items() if is_a_mechanism(value) or makes_a_channel(value)
    }
    registered = {entry.home.rpartition(".")[2] for entry in REGISTRY.values()}
    assert found - MADE_BY_OTHERS <= registered
    publish = {name for name, value in public.items() if callable(getattr(value, "publish", None))}
    assert publish == PUBLISHERS


def test_every_registered_mechanism_runs_under_some_contract():
    assert sorted([*MECHANISMS, *OTHERS]) == sorted(REGISTRY)
    assert set(DENSITIES) | set(CHANNELS) | set(FINITE) | OWN_LAW_TESTS >= set(MECHANISMS)
    assert set(CALIBRATED) <= set(DENSITIES)


def test_names_build_what_an_epsilon_alone_can_build():
    for name, entry in REGISTRY.items():
        if entry.by_epsilon:
            assert mechanism_named(name, "0.01/m") == example(name)
        else:
            with pytest.raises(InvalidInput, match="must be one of"):
                mechanism_named(name, "0.01/m")


def test_an_unknown_name_lists_the_known_ones_and_the_nearest():
    with pytest.raises(InvalidInput, match=r"planar-laplace.*did you mean 'globe-laplace'"):
        mechanism_named("globe_laplace", "0.01/m")
