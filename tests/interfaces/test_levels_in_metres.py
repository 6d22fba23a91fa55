"""Wherever a level is asked for, metres will do."""

from __future__ import annotations

import click
import pytest

import whereish as wh
from whereish.interfaces.cli import cli
from whereish.interfaces.cli.parameters import BUDGET, LEVEL, EpsilonType, ErrorOrLevelType


def commands(command: click.Command, name: str = "whereish"):
    if isinstance(command, click.Group):
        context = click.Context(command)
        for sub in command.list_commands(context):
            yield from commands(command.get_command(context, sub), f"{name} {sub}")
    else:
        yield name, command


def test_no_option_takes_a_level_alone():
    seen = 0
    for name, command in commands(cli):
        options = {opt: p for p in command.params for opt in p.opts}
        for opt, parameter in options.items():
            if isinstance(parameter.type, EpsilonType):
                seen += 1
                metres = isinstance(parameter.type, ErrorOrLevelType) or "--mean-error" in options
                assert metres, f"{name} {opt}"
    assert seen >= 10


@pytest.mark.parametrize(
    ("said", "level"),
    [
        ("10/km", wh.Epsilon.of("10/km")),
        ("300 m", wh.wanted_level(mean_error="300 m")),
        ("10 x 300 m", 10 * wh.wanted_level(mean_error="300 m")),
        ("3*0.5 km", 3 * wh.wanted_level(mean_error="500 m")),
        ("2 × 1000 ft", 2 * wh.wanted_level(mean_error="304.8 m")),
    ],
)
def test_a_budget_is_a_level_or_reports_of_a_mean_error(said, level):
    assert BUDGET.convert(said, None, None).per_m == pytest.approx(level.per_m, rel=1e-12)


def test_a_level_is_no_multiple():
    assert LEVEL.convert("2 km", None, None) == wh.wanted_level(mean_error="2 km")
    with pytest.raises(click.BadParameter, match="must be a level per length"):
        LEVEL.convert("2 x 2 km", None, None)
