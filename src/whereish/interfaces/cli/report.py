"""``whereish report``: say roughly where a place is."""

from __future__ import annotations

import json
import math

import click

from whereish.interfaces.cli.parameters import EPSILON, PLACES, describe
from whereish.units import Epsilon

__all__ = ["command"]


@click.command("report")
@click.option(
    "--at",
    "places",
    type=PLACES,
    required=True,
    help="The true place in degrees; '-' reads one per line from standard input, which keeps it"
    " out of the shell's history.",
)
@click.option("--epsilon", type=EPSILON, required=True, help="Privacy level, as 'ln(4)/200 m'.")
@click.option(
    "-n", "count", type=click.IntRange(1, 1_000_000), default=1, help="Reports of each place."
)
@click.option(
    "--decimals",
    type=click.IntRange(0, 9),
    default=5,
    show_default=True,
    help="Reports are multiples of 10^-decimals degrees.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with the guarantee.")
def command(
    places: list[list[float]], epsilon: Epsilon, count: int, decimals: int, as_json: bool
) -> None:
    """Print a private report of a place, LAT,LON.

    Each report is the true place plus Laplace noise on the globe.  Several reports of
    one place together keep the sum of their guarantees, which is what is printed.
    """
    import numpy as np

    from whereish.mechanisms.globe_laplace import GlobeLaplace

    mechanism = GlobeLaplace(epsilon, decimals=decimals)
    reports = mechanism.report(np.repeat(np.asarray(places), count, axis=0)).coordinates
    guarantee = mechanism.guarantee.repeated(count)
    if as_json:
        payload = {
            "reports": [{"lat": lat, "lon": lon} for lon, lat in reports.tolist()],
            "reports_per_place": count,
            "guarantee": guarantee.to_json(),
            "mean_error_m": round(mechanism.mean_error.m, 3),
            "radius_95_m": round(mechanism.quantile(0.95).m, 3),
        }
        click.echo(json.dumps(payload, indent=2))
        return
    for lon, lat in reports:
        click.echo(f"{lat:.{decimals}f},{lon:.{decimals}f}")
    click.echo(describe(guarantee), err=True)
    click.echo(
        f"each report is within {math.ceil(mechanism.quantile(0.95).m)} m of the place with"
        f" probability 0.95, {round(mechanism.mean_error.m)} m away on average",
        err=True,
    )
