"""``whereish trace``: report a person's places, whole or as they come, at a cost that is printed.

A whole file is one release (``PredictiveMechanism.report``): nothing leaves before all of it is
drawn, so it may be smoothed, and needs fewer noisy reports for the same error.  Lines of standard
input, and sessions that are kept, are reported place by place: what has left cannot be smoothed.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import click

from whereish.errors import BudgetExceeded, InvalidInput, NotWritten
from whereish.interfaces.cli.parameters import (
    BUDGET,
    DECIMALS,
    POSITIVE,
    WholeType,
    describe,
    file_option,
)
from whereish.units import Epsilon
from whereish.units import number as decimal

if TYPE_CHECKING:
    from whereish.mechanisms.traces.budget import BudgetManager
    from whereish.mechanisms.traces.predictive import PredictiveMechanism, TraceSession
    from whereish.mechanisms.traces.release import TraceRelease

__all__ = ["command"]

Step: TypeAlias = "tuple[list[str], float | None, list[float]]"
"""([time as it is written], in seconds, [lon, lat]) of one place."""


@click.command("trace")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option(
    "--lon", help="With FILE: the column of longitudes (files with a geometry need none)."
)
@click.option("--lat", help="With FILE: the column of latitudes.")
@click.option("--time", "time_column", help="With FILE: the column of times, which are public.")
@click.option("--layer", help="With FILE: its layer; of GPX the track's points by default.")
@click.option(
    "--live",
    is_flag=True,
    help="With FILE: report place by place, as it would have been while it happened, not smoothed.",
)
@file_option(
    "--session",
    "state",
    help="Keep the trace's public state in this file, and go on from it where it exists (live).",
)
@click.option("--accuracy", help="Fixed utility: noisy reports are within this, as '200 m'.")
@click.option(
    "--steps", type=WholeType(1, 10**9), help="Fixed rate: the total lasts for so many reports."
)
@click.option(
    "--total",
    type=BUDGET,
    help="What the whole trace may spend, as '0.1/m', or '10 x 300 m' for what ten reports cost"
    " that are 300 m away on average.",
)
@click.option(
    "--top-speed",
    type=POSITIVE,
    help="Metres per second that nobody exceeds; steps too soon after the last are then free."
    " (Tests at every step.)",
)
@click.option(
    "--tests",
    type=click.Choice(["sparse", "every"]),
    help="Fixed utility: look after pauses only (the default), or test at every step.",
)
@click.option(
    "--no-blocks",
    is_flag=True,
    help="Fixed utility: noise for each report alone, dearer in all, with less told of one place.",
)
@DECIMALS
def command(
    file: Path | None,
    lon: str | None,
    lat: str | None,
    time_column: str | None,
    layer: str | None,
    live: bool,
    state: Path | None,
    accuracy: str | None,
    steps: int | None,
    total: Epsilon | None,
    top_speed: float | None,
    tests: Literal["sparse", "every"] | None,
    no_blocks: bool,
    decimals: int,
) -> None:
    """Report one person's places from FILE (GPX, CSV, Parquet), or from standard input.

    There a line is TIME,LAT,LON or LAT,LON: degrees, and seconds or an ISO 8601 time, which
    is public.  Each comes out as a line with the same time (to the millisecond, and in
    UTC), the reported place, and "hard" where fresh noise was drawn or "easy" where earlier
    reports still held.

    A FILE is reported as a whole: once all of it is drawn it is smoothed, which takes fewer
    noisy reports for the same error.  Standard input, a --session, and a FILE with --live are
    reported place by place.

    At the end are printed which of the two it was, the budget actually spent, and the guarantee
    that holds for every run: the --total, or without one the worst case of so many places.  When
    the total does not suffice for another report, the trace ends there with exit code 2.
    """
    from whereish.interfaces.cli.files.track_files import track_places
    from whereish.mechanisms.noise.globe_laplace import GlobeLaplace
    from whereish.mechanisms.traces.predictive import PredictiveMechanism

    budget = _manager(accuracy, steps, total, top_speed, tests, blocks=not no_blocks)
    mechanism = PredictiveMechanism(budget, lambda eps: GlobeLaplace(eps, decimals=decimals))
    if file is None:
        places = (_read(line, number) for number, line in _lines())
    else:
        places = (
            _of_row(told, place, number)
            for number, (told, place) in enumerate(
                track_places(file, lon, lat, time_column, layer), start=1
            )
        )
    if file is None or live or state is not None:
        release, spent_all = _place_by_place(mechanism, places, state, decimals)
        way = "reported place by place (live), not smoothed"
    else:
        release, spent_all = _as_a_whole(mechanism, list(places), decimals)
        way = "reported as a whole"
        if release.smoothed:
            way += ", smoothed once all of it was drawn (which costs nothing)"
    click.echo(way, err=True)
    click.echo(
        f"{len(release)} reports, {int(release.hard.sum())} of them hard, spent"
        f" {release.epsilon_spent} in all",
        err=True,
    )
    click.echo(f"these very reports, with what they spent, keep: {release.guarantee}", err=True)
    if release.total is not None:
        click.echo(describe(release.bound), err=True)
    elif release.places is not None:
        click.echo("without --total, the worst case of so many places:", err=True)
        click.echo(describe(mechanism.worst_case(release.places)), err=True)
    if spent_all is not None:
        raise spent_all


def _place_by_place(
    mechanism: PredictiveMechanism, places: Iterator[Step], state: Path | None, decimals: int
) -> tuple[TraceRelease, BudgetExceeded | None]:
    """Each place leaves before the next is read; a kept session goes on."""
    session = mechanism.resume(_kept(state)) if state and state.exists() else mechanism.start()
    spent_all: BudgetExceeded | None = None
    for number, (when, time_s, place) in enumerate(places, start=1):
        try:
            (told,) = session.report(place, time_s)
        except BudgetExceeded as error:
            spent_all = error
            break
        except InvalidInput as error:
            raise InvalidInput(f"line {number}: {error}") from None
        if state is not None:
            _keep(state, session)
        _say(when, told, decimals, hard=session.transcript.reports[-1].hard)
    release = session.release()
    if not len(release):
        raise spent_all or _no_places()
    return release, spent_all


def _as_a_whole(
    mechanism: PredictiveMechanism, places: list[Step], decimals: int
) -> tuple[TraceRelease, BudgetExceeded | None]:
    """Nothing leaves before all of it is drawn."""
    if not places:
        raise _no_places()
    times = [time_s for _, time_s, _ in places]
    some = [time_s for time_s in times if time_s is not None]
    if some and len(some) < len(times):
        raise InvalidInput("either all reports of a trace have a time, or none")
    release = mechanism.report([place for _, _, place in places], some or None)
    reports = zip(places, release.reports, release.hard, strict=False)
    for (when, _, _), told, hard in reports:
        _say(when, told, decimals, hard=bool(hard))
    if len(release) == len(places):
        return release, None
    spent_all = BudgetExceeded(
        f"the trace's budget cannot pay for another report: it has spent"
        f" {float(release.spent):.6g} per metre in {len(release)} reports of {len(places)} places"
    )
    if not len(release):
        raise spent_all
    return release, spent_all


def _no_places() -> InvalidInput:
    return InvalidInput("there must be at least one line TIME,LAT,LON or LAT,LON")


def _say(when: list[str], told: Any, decimals: int, *, hard: bool) -> None:
    lon, lat = told
    fields = [*when, f"{lat:.{decimals}f}", f"{lon:.{decimals}f}", "hard" if hard else "easy"]
    click.echo(",".join(fields))


def _lines() -> Iterator[tuple[int, str]]:
    return ((n, line) for n, line in enumerate(sys.stdin, start=1) if line.strip())


def _of_row(told: str | None, place: list[float], number: int) -> Step:
    if told is None:
        return [], None, place
    try:
        written, time_s = _moment(told)
    except (ValueError, OverflowError):
        raise InvalidInput(f"row {number} must have seconds or an ISO 8601 time") from None
    return [written], time_s, place


def _kept(state: Path) -> Any:
    try:
        return json.loads(state.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InvalidInput(f"the session {state.name} cannot be read: is it damaged?") from None


def _keep(state: Path, session: TraceSession) -> None:
    """The public state, in one step and before the report leaves."""
    new = state.with_name(f".{state.name}.new")
    try:
        with new.open("w", encoding="utf-8") as file:
            json.dump(session.to_json(), file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(state)
    except OSError as error:
        raise NotWritten(
            f"the session {state.name} cannot be written ({error.strerror}); the report is withheld"
        ) from None


def _manager(
    accuracy: str | None,
    steps: int | None,
    total: Epsilon | None,
    top_speed: float | None,
    tests: Literal["sparse", "every"] | None,
    *,
    blocks: bool,
) -> BudgetManager:
    from whereish.mechanisms.traces.budget import FixedRate, FixedUtility

    if (accuracy is None) == (steps is None):
        raise InvalidInput("give either --accuracy (fixed utility) or --steps (fixed rate)")
    if accuracy is not None:
        return FixedUtility(accuracy, total=total, top_speed=top_speed, tests=tests, blocks=blocks)
    assert steps is not None
    if tests == "sparse":
        raise InvalidInput("--tests sparse goes with --accuracy: a fixed rate tests every step")
    if total is None:
        raise InvalidInput("--steps needs --total, the budget that shall last for them")
    return FixedRate(total, steps, top_speed=top_speed)


def _read(line: str, number: int) -> Step:
    """([time as given], in seconds, [lon, lat]); an error does not quote the line."""
    fields = [part.strip() for part in line.split(",")]
    if len(fields) not in (2, 3):
        raise InvalidInput(f"line {number} must be TIME,LAT,LON or LAT,LON")
    *when, lat, lon = fields
    try:
        place = [decimal(lon), decimal(lat)]
        told, time_s = _moment(when[0]) if when else ("", None)
    except InvalidInput:
        raise
    except (ValueError, OverflowError):
        raise InvalidInput(
            f"line {number} must have numbers for LAT and LON, and seconds or an ISO 8601 time"
        ) from None
    if not all(map(math.isfinite, place)) or abs(place[1]) > 90 or abs(place[0]) > 180:
        raise InvalidInput(
            f"line {number} must have a latitude within 90 and a longitude within 180 degrees, in"
            " the order LAT,LON"
        )
    return [told] if when else [], time_s, place


def _moment(text: str) -> tuple[str, float]:
    """A time of seconds or ISO 8601, as it was given and in seconds.

    It is written anew and never echoed: the text may carry a zone, and digits of anything.
    What could be a degree is refused.
    """
    try:
        seconds = decimal(text)
    except ValueError:
        moment = datetime.fromisoformat(text)
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
        whole = moment.microsecond < 1000
        told = moment.isoformat(timespec="seconds" if whole else "milliseconds")
        return told.replace("+00:00", "Z"), moment.timestamp()
    if not math.isfinite(seconds):
        raise ValueError
    if abs(seconds) <= 360 and not seconds.is_integer():
        raise InvalidInput("a time must not look like degrees: is the order TIME,LAT,LON?")
    return f"{seconds:.3f}".rstrip("0").rstrip("."), seconds
