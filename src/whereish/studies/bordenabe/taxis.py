"""Taxi trips (Figures 6.6 and 6.7): the mechanisms of 6.3 on other data.

The thesis uses T-Drive, taxis in Beijing, which is not here.  New York taxi trips stand in where
they are present; without them trips are made up.  A trip has no driver: priors are everybody's,
of the 50 cells with most ends of trips, in each period of the day.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pyarrow import parquet

from whereish.arrays import FloatArray, IntArray
from whereish.audit.adversary import adversary_error
from whereish.audit.utility import quality_loss
from whereish.data.visits import PERIODS
from whereish.mechanisms.channels.laplace import laplace_channel
from whereish.mechanisms.channels.opt_priv import opt_priv_channel
from whereish.mechanisms.channels.optimal import optimal_channel
from whereish.space.plane import Plane
from whereish.space.points import Points
from whereish.space.raster import Raster
from whereish.space.sites import Sites
from whereish.studies.bordenabe.people import CELL_M
from whereish.studies.figures import panels
from whereish.studies.framework.study import Run, Study, real_data

__all__ = ["STUDY"]

_EPSILON = "1.07/km"


def _trips(run: Run) -> tuple[FloatArray, IntArray, Raster, str]:
    """Ends of trips on a grid's plane, their hours, the grid, and where they come from."""
    path = real_data("nyc_taxi_jan2015_50k.parquet")
    width, height = (count * side for count, side in zip((14, 16), CELL_M, strict=True))
    if path is None:
        grid = Raster(16, 14, CELL_M, (-width / 2, -height / 2))
        places = run.public.normal(0, 2000, (60_000, 2))
        return places, run.public.integers(0, 24, 60_000), grid, "made-up trips"
    table = parquet.read_table(path)
    plane = Plane.around(-73.985, 40.75, "20 km")
    grid = Raster(16, 14, CELL_M, (-width / 2, -height / 2), plane)
    degrees = np.vstack(
        [
            np.column_stack([table[f"{end}_lon"].to_numpy(), table[f"{end}_lat"].to_numpy()])
            for end in ("o", "d")
        ]
    )
    hours = np.concatenate(
        [
            table[name].to_numpy().astype("datetime64[h]").astype(np.int64) % 24
            for name in ("pickup", "dropoff")
        ]
    )
    assert plane.region is not None
    inside = plane.region.contains(degrees)
    places = plane.from_degrees(*degrees[inside].T).coordinates
    return places, hours[inside], grid, "New York taxi trips of January 2015, for T-Drive"


def _of_period(hours: IntArray, period: str) -> NDArray[np.bool_]:
    start, end = PERIODS[period]
    if start < end:
        return np.asarray((hours >= start) & (hours < end))
    return np.asarray((hours >= start) | (hours < end))


def _run(run: Run) -> None:
    places, hours, grid, source = _trips(run)
    box = grid.box
    inside = (
        (places[:, 0] >= box.x_low)
        & (places[:, 0] < box.x_high)
        & (places[:, 1] >= box.y_low)
        & (places[:, 1] < box.y_high)
    )
    cell = grid.locate(places[inside])
    hour = hours[inside]
    busiest = np.sort(np.argsort(-np.bincount(cell, minlength=len(grid)), kind="stable")[:50])
    sites = Sites(Points(grid.centres()[busiest], grid.plane))

    def prior(some: NDArray[np.bool_]) -> FloatArray:
        counts = np.bincount(cell[some], minlength=len(grid))[busiest] + 1e-9
        return np.asarray(counts / counts.sum())

    everyone = prior(np.ones(len(cell), bool))
    best = optimal_channel(sites, everyone, _EPSILON, dilation=1.05, gap=1e-3)
    channels = {
        "OptQL": best,
        "OptPriv": opt_priv_channel(sites, everyone, most_loss=best.loss),
        "planar Laplace": laplace_channel(sites, quality_loss=best.loss, prior=everyone),
    }
    periods = {"all day": everyone, **{name: prior(_of_period(hour, name)) for name in PERIODS}}
    errors, losses = panels(2, width=5.2)
    rows: list[tuple[object, ...]] = []
    for index, (name, channel) in enumerate(channels.items()):
        error = [adversary_error(channel, p) / 1000 for p in periods.values()]
        loss = [quality_loss(channel, p) / 1000 for p in periods.values()]
        rows.append((name, "adversary error", *error))
        rows.append((name, "quality loss", *loss))
        at = np.arange(len(periods)) + (index - 1) * 0.27
        errors.bar(at, error, 0.25, label=name)
        losses.bar(at, loss, 0.25, label=name)
    for axes, label in ((errors, "adversary's expected error (km)"), (losses, "quality loss (km)")):
        axes.set_xticks(range(len(periods)), list(periods))
        axes.set(xlabel="period of the day", ylabel=label)
        axes.set_ylim(0, 1.3 * axes.get_ylim()[1])
        axes.legend(loc="upper right", ncols=3)
    run.draw("periods", errors, f"Figures 6.6 and 6.7: {source}.")
    run.table(f"Kilometres by period, {source}", ("mechanism", "what", *periods), rows)
    run.note(f"T-Drive is not here: {source}.")


STUDY = Study("b-taxis", "Taxis: Figures 6.6 and 6.7 on stand-in data", "B", 66, _run)
