"""``whereish nearby``: what is near a place, asked around a report of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from whereish.errors import InvalidInput
from whereish.interfaces.cli.parameters import (
    CONFIDENCE,
    LEDGER,
    LENGTH,
    POSITIVE,
    WholeType,
    at_option,
    file_option,
    level_options,
)
from whereish.units import Epsilon, Length

if TYPE_CHECKING:
    from whereish.lbs.nearby import Nearby

__all__ = ["command"]


@click.command("nearby")
@at_option("reads it from")
@click.option("--radius", type=LENGTH, default="300 m", show_default=True, help="How far is near.")
@file_option(
    "--places",
    "source",
    help="A store that `whereish places` made, or a table of places (read into memory).",
)
@click.option("--overpass", metavar="URL", help="Ask an Overpass server; needs --what.")
@click.option("--what", help='With --overpass: what is asked for, as \'nwr["amenity"="cafe"]\'.')
@click.option("--ogc", metavar="URL", help="Ask an OGC API Features server; needs --collection.")
@click.option("--collection", help="With --ogc: the name of the collection.")
@click.option(
    "--server",
    metavar="URL",
    help="Let a whereish service ask its own source; its token is read from WHEREISH_TOKEN.",
)
@click.option("--level", help="With --server: the id of one of its mechanisms.")
@click.option("--keep", multiple=True, help="A column, tag or property that results show.")
@level_options("of the report", confidence=False)
@file_option(
    "--mechanism",
    "saved",
    help="Report with a mechanism that `whereish build` saved, instead of --epsilon.",
)
@click.option("--pin", help="Use the one report of this pinned place; with --epsilon pin it first.")
@file_option("--pins", help="With --pin: the private file of pinned places.")
@click.option(
    "--confidence",
    type=CONFIDENCE,
    default=0.95,
    show_default=True,
    help="How probably all that is near is among what is fetched, at least; also of --within.",
)
@click.option("-k", "k", type=WholeType(1, 10_000), help="The k nearest; needs --per-km2.")
@click.option("--per-km2", type=POSITIVE, help="With -k: how many places a square kilometre has.")
@click.option(
    "--unfiltered", is_flag=True, help="What is near the report, not the place: less traffic."
)
@LEDGER
@click.option("--subject", help="With --ledger or --server: whom to charge ('me' in a ledger).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with how it was found.")
def command(
    places: list[list[float]],
    radius: Length,
    source: Path | None,
    overpass: str | None,
    what: str | None,
    ogc: str | None,
    collection: str | None,
    server: str | None,
    level: str | None,
    keep: tuple[str, ...],
    epsilon: Epsilon | None,
    saved: Path | None,
    pin: str | None,
    pins: Path | None,
    confidence: float,
    k: int | None,
    per_km2: float | None,
    unfiltered: bool,
    ledger: str | None,
    subject: str | None,
    as_json: bool,
) -> None:
    """Print what is near a place, LAT,LON, nearest first.

    The source is asked around a private report of the place, farther than --radius by a
    distance that depends on no draw, and what comes is filtered here.  Each call is one report;
    a pinned place has one report for ever.
    """
    from whereish.lbs.nearby import nearby
    from whereish.publish.ledger import open_ledger

    if len(places) != 1:
        raise InvalidInput("--at must be one place")
    lon, lat = places[0]
    if server is not None:
        _ask_service(server, (lon, lat), radius, level, subject, keep, as_json)
        return
    if level is not None:
        raise InvalidInput("--level is for --server: say --epsilon or --mechanism")
    if epsilon is None and saved is None and pin is None:
        raise InvalidInput(
            "say how much noise the report has: --mean-error '300 m', --within '500 m',"
            " --epsilon 'ln(4)/200 m', --mechanism FILE or --pin NAME"
        )
    book = None if ledger is None else open_ledger(ledger)
    how: dict[str, Any] = {"ledger": book, "subject": subject or "me"}
    if pin is not None:
        how = {"pinned": _pinned(pin, pins, (lon, lat), epsilon, saved, how)}
    else:
        how |= {"epsilon": epsilon, "mechanism": _loaded(saved)}
    found = nearby(
        (lon, lat),
        radius,
        source=_source(source, (overpass, what), (ogc, collection), keep),
        confidence=confidence,
        k=k,
        per_km2=per_km2,
        filtered=not unfiltered,
        **how,
    )
    _show(found, keep, as_json)


def _source(
    path: Path | None,
    overpass: tuple[str | None, str | None],
    ogc: tuple[str | None, str | None],
    keep: tuple[str, ...],
) -> Any:
    from whereish.lbs.sources.features import OgcFeatures, Overpass
    from whereish.lbs.sources.memory import MemorySource
    from whereish.lbs.sources.store import PlaceStore

    if sum(one is not None for one in (path, overpass[0], ogc[0])) != 1:
        raise InvalidInput("give exactly one of --places, --overpass, --ogc and --server")
    if path is not None:
        return PlaceStore(path) if path.suffix == ".db" else MemorySource(path, keep=keep)
    if overpass[0] is not None:
        return Overpass(overpass[0], overpass[1] or "", keep=keep)
    if ogc[0] is None or ogc[1] is None:
        raise InvalidInput("--ogc needs --collection")
    return OgcFeatures(ogc[0], ogc[1], keep=keep)


def _ask_service(
    url: str,
    place: tuple[float, float],
    radius: Length,
    level: str | None,
    subject: str | None,
    keep: tuple[str, ...],
    as_json: bool,
) -> None:
    """A service draws, charges and asks; what comes is filtered there, by the true place."""
    from dataclasses import asdict

    from whereish.interfaces.client import Client

    given = click.get_current_context().get_parameter_source
    sources, level_of = ("source", "overpass", "ogc"), ("epsilon", "mean_error", "within")
    own = (*sources, *level_of, "confidence", "saved", "pin", "k", "unfiltered", "ledger")
    named = [name for name in own if given(name) is ParameterSource.COMMANDLINE]
    if named:
        raise InvalidInput(
            "with --server the service has the source, the mechanism and the ledger: leave"
            " everything out but --radius, --level, --subject and --keep"
        )
    with Client(url) as client:
        found = client.nearby(*place, radius, mechanism=level, subject=subject)
    if as_json:
        click.echo(json.dumps(asdict(found), indent=2, default=str))
        return
    _list(found.results, keep)
    within = f"{found.retrieval_radius_m:.0f} m of a report"
    click.echo(f"{len(found)} of {found.fetched} places fetched within {within}", err=True)
    if not found.complete:
        click.echo("some may be missing here", err=True)


def _list(results: list[dict[str, Any]], keep: tuple[str, ...]) -> None:
    for row in results:
        words = [f"{row['distance_m']:8.0f} m", f"{row['lat']:.6f},{row['lon']:.6f}"]
        click.echo("  ".join([*words, *(str(row.get(name, "")) for name in keep)]))


def _loaded(saved: Path | None) -> Any:
    from whereish.mechanisms.saved import load

    return None if saved is None else load(saved)


def _pinned(
    name: str,
    path: Path | None,
    place: tuple[float, float],
    epsilon: Epsilon | None,
    saved: Path | None,
    charge: dict[str, Any],
) -> Any:
    from whereish.lbs.pins import PinnedPlaces

    if path is None:
        raise InvalidInput("--pin needs --pins, the file of pinned places")
    pins = PinnedPlaces(path)
    if name in pins:
        if epsilon is not None or saved is not None:
            raise InvalidInput(
                "this place is pinned already, at its own level: leave --epsilon and --mechanism"
                " out"
            )
        return pins[name]
    made = pins.pin(name, place, epsilon=epsilon, mechanism=_loaded(saved), **charge)
    click.echo(made.statement, err=True)
    return made


def _show(found: Nearby, keep: tuple[str, ...], as_json: bool) -> None:
    if as_json:
        lon, lat = found.report
        said = {
            "results": found.results,
            "report": {"lat": lat, "lon": lon},
            "radius_m": found.radius.m,
            "confidence": found.confidence,
            "covered": found.covered,
            "complete": found.complete,
            "fetched": found.fetched,
            "bytes": found.bytes,
        }
        click.echo(json.dumps(said, indent=2, default=str))
        return
    _list(found.results, keep)
    click.echo(
        f"{len(found)} of {found.fetched} places that were fetched within {found.radius} of a"
        " report",
        err=True,
    )
    if not found.complete:
        click.echo("the source left out places that were asked for", err=True)
    elif found.confidence and not found.covered:
        click.echo("the report fell so far away that some may be missing here", err=True)
