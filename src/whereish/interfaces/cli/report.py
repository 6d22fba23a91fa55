"""``whereish report``: say roughly where a place is."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whereish.errors import InvalidInput
from whereish.interfaces.cli.parameters import (
    DECIMALS,
    WholeType,
    at_option,
    describe,
    file_option,
    level_options,
)
from whereish.units import Epsilon

if TYPE_CHECKING:
    from whereish.space.points import Points

__all__ = ["command"]


@click.command("report")
@at_option("reads one per line from")
@level_options("of each report")
@file_option(
    "--mechanism",
    "saved",
    help="Report with a mechanism that `whereish build` saved, which has its own level.",
)
@click.option(
    "--server",
    help="Ask a service at this address, which draws and charges; its token is read from"
    " WHEREISH_TOKEN.",
)
@click.option("--level", help="With --server: the id of one of its mechanisms.")
@click.option("--subject", help="With --server: who is charged.")
@click.option("-n", "count", type=WholeType(1, 1_000_000), default=1, help="Reports of each place.")
@DECIMALS
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with the guarantee.")
def command(
    places: list[list[float]],
    epsilon: Epsilon | None,
    saved: Path | None,
    server: str | None,
    level: str | None,
    subject: str | None,
    count: int,
    decimals: int,
    as_json: bool,
) -> None:
    """Print a private report of a place, LAT,LON.

    Each report is the true place plus Laplace noise on the globe, or what a saved
    mechanism makes of it.  Several reports of one place together keep the sum of their
    guarantees, which is what is printed.
    """
    if (epsilon is not None) + (saved is not None) + (server is not None) != 1:
        raise InvalidInput(
            "give one of --mean-error '300 m', --within '500 m', --epsilon 'ln(4)/200 m',"
            " --mechanism FILE and --server URL"
        )
    if server is None and (level is not None or subject is not None):
        raise InvalidInput("--level and --subject are for --server")
    if server is not None:
        _report_served(server, places, count, decimals, as_json, level=level, subject=subject)
        return
    if saved is not None:
        _report_saved(saved, places, count, decimals, as_json)
        return
    assert epsilon is not None
    import numpy as np

    from whereish.mechanisms.noise.globe_laplace import GlobeLaplace

    mechanism = GlobeLaplace(epsilon, decimals=decimals)
    reports = mechanism.report(np.repeat(np.asarray(places), count, axis=0)).coordinates
    guarantee = mechanism.guarantee.repeated(count)
    # In true metres, for every place on Earth: they tell nothing about this one.
    radius = mechanism.quantile(0.95).m
    mean = mechanism.mean_error.m + mechanism.rounding.m
    if as_json:
        payload = {
            "reports": [{"lat": lat, "lon": lon} for lon, lat in reports.tolist()],
            "reports_per_place": count,
            "guarantee": guarantee.to_json(),
            "mean_error_m": math.ceil(1000 * mean) / 1000,
            "radius_95_m": math.ceil(1000 * radius) / 1000,
        }
        click.echo(json.dumps(payload, indent=2))
        return
    for lon, lat in reports:
        click.echo(f"{lat:.{decimals}f},{lon:.{decimals}f}")
    click.echo(describe(guarantee, mechanism, reports=count), err=True)


def _report_served(
    server: str,
    places: list[list[float]],
    count: int,
    decimals: int,
    as_json: bool,
    *,
    level: str | None,
    subject: str | None,
) -> None:
    """Reports that a service draws and charges."""
    from whereish.interfaces.client import Client

    with Client(server) as client:
        asked = [(lon, lat) for lon, lat in places for _ in range(count)]
        reports = client.reports(asked, mechanism=level, subject=subject)
    first = reports[0]
    if as_json:
        payload = {
            "reports": [{"lat": r.lat, "lon": r.lon} for r in reports],
            "reports_per_place": count,
            "mechanism": first.mechanism,
            "epsilon_per_m": first.epsilon.per_m,
            "charged": first.charged,
            "radius_95_m": first.accuracy_m,
        }
        click.echo(json.dumps(payload, indent=2))
        return
    for report in reports:
        click.echo(f"{report.lat:.{decimals}f},{report.lon:.{decimals}f}")
    charged = "charged" if first.charged else "not charged"
    click.echo(f"each report keeps {first.epsilon} in true metres, and was {charged}", err=True)


def _report_saved(
    path: Path, places: list[list[float]], count: int, decimals: int, as_json: bool
) -> None:
    """Reports of a mechanism from a file, in degrees through its own plane."""
    import numpy as np

    from whereish.mechanisms.saved import load_places
    from whereish.space.plane import Plane
    from whereish.space.sphere import Sphere

    mechanism = load_places(path)
    space = mechanism.space
    if not isinstance(space, Plane | Sphere):
        raise InvalidInput(f"{path.name} works in {space.description}, where degrees have no place")
    lon, lat = np.repeat(np.asarray(places), count, axis=0).T
    secrets = _as_sites(mechanism, space.from_degrees(lon, lat))
    reported_lon, reported_lat = space.to_degrees(mechanism.report(secrets))
    guarantee = mechanism.guarantee.repeated(count) if count > 1 else mechanism.guarantee
    if as_json:
        payload = {
            "reports": [
                {"lat": float(y), "lon": float(x)}
                for x, y in zip(reported_lon, reported_lat, strict=True)
            ],
            "reports_per_place": count,
            "guarantee": guarantee.to_json(),
        }
        click.echo(json.dumps(payload, indent=2))
        return
    for x, y in zip(reported_lon, reported_lat, strict=True):
        click.echo(f"{y:.{decimals}f},{x:.{decimals}f}")
    click.echo(describe(guarantee, mechanism, reports=count), err=True)


_SITE_M = 1.0
"""A place typed with five decimals is closer than this to the site that is meant."""


def _as_sites(mechanism: Any, places: Points) -> Points:
    """For a channel: the sites that the places are up to the rounding of typed degrees."""
    from whereish.mechanisms.channels.channel import Channel
    from whereish.privacy.norms import Euclidean, GreatCircle
    from whereish.space.sphere import Sphere

    if not isinstance(mechanism, Channel):
        return places
    sites = mechanism.nearest_sites(places)
    metric = GreatCircle() if isinstance(places.space, Sphere) else Euclidean()
    beyond = int((metric(places.coordinates, sites.coordinates) > _SITE_M).sum())
    if beyond:
        raise InvalidInput(
            f"--at must be sites of the channel, to within {_SITE_M:g} m; {beyond} of"
            f" {len(places)} are not: report the site that is closest to the place, and know that"
            " the promise then is about sites"
        )
    return sites
