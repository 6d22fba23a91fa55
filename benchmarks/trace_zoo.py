"""Made-up traces of many kinds, and taxis from New York's trips, for the benchmarks of traces.

Everything is in metres of a plane and seconds, and a function of the seed.  How long people move
alike was chosen on seeds 301 and 777, so of the benchmark's seeds only 302 and 303 are unseen; what
share of a block is paid, on seeds 777 to 779.
"""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.measure import DATA

TRIPS = DATA / "nyc_taxi_jan2015_50k.parquet"
Array = NDArray[np.float64]
Trace = tuple[Array, Array]
MINUTE = ", a point a minute"


def legs(generator: np.random.Generator, count: int, metres: float, points: int) -> Array:
    """Straight legs of so many points in random directions, so many metres between two points."""
    heading = np.repeat(generator.uniform(0, 2 * np.pi, count // points + 1), points)[:count]
    return (metres * np.column_stack([np.cos(heading), np.sin(heading)])).cumsum(axis=0)


def turning(generator: np.random.Generator, count: int, metres: float, turn: float) -> Array:
    """A walk whose direction changes by about `turn` radians at each point."""
    heading = generator.normal(0, turn, count).cumsum()
    return metres * np.column_stack([np.cos(heading), np.sin(heading)]).cumsum(axis=0)


def jitter(generator: np.random.Generator, count: int, metres: float = 8.0) -> Array:
    """Errors of a receiver: Gaussian, alike for about two minutes of points every 5 s."""
    kept = np.exp(-1 / 25)
    found = generator.normal(0, metres, (count, 2))
    for i in range(1, count):
        found[i] = kept * found[i - 1] + np.sqrt(1 - kept * kept) * found[i]
    return found


def _between(times: list[float], places: list[Array], seconds: Array) -> Array:
    """Where somebody is who passes these places at these times."""
    table = np.array(places)
    return np.column_stack([np.interp(seconds, times, table[:, axis]) for axis in (0, 1)])


def streets(
    generator: np.random.Generator, seconds: Array, speed: float, block: float, wait: float
) -> Array:
    """Along blocks of a rectangular city, at varying speed, with turns and red lights."""
    ways = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    times, places, heading = [0.0], [np.zeros(2)], 0
    while times[-1] < seconds[-1]:
        length = block * generator.uniform(0.5, 1.5)
        places.append(places[-1] + length * ways[heading])
        times.append(times[-1] + length / (speed * generator.uniform(0.6, 1.4)))
        if generator.random() < 0.35:
            places.append(places[-1])
            times.append(times[-1] + generator.exponential(wait))
        if generator.random() < 0.25:
            heading = (heading + generator.choice([1, 3])) % 4
    return _between(times, places, seconds)


def trips(
    generator: np.random.Generator, seconds: Array, speed: float, city: float, stay: float
) -> Array:
    """From one place of a city to the next, by a way with detours, and a stay at each."""
    times, places = [0.0], [generator.normal(0, city, 2)]
    while times[-1] < seconds[-1]:
        times.append(times[-1] + generator.lognormal(np.log(stay), 1.0))
        places.append(places[-1])
        start, goal = places[-1], generator.normal(0, city, 2)
        length = float(np.hypot(*(goal - start)))
        parts = max(int(length / 400), 1)
        for part in range(1, parts + 1):
            detour = generator.normal(0, 0.15 * min(length, 2000), 2) * (part < parts)
            place = start + (goal - start) * part / parts + detour
            walked = float(np.hypot(*(place - places[-1])))
            times.append(times[-1] + walked / (speed * generator.uniform(0.4, 1.6)))
            places.append(place)
    return _between(times, places, seconds)


def made(seed: int) -> dict[str, Trace]:
    """Traces with a point every 5 s: walks, drives, stays and days of them."""
    generator = np.random.default_rng(seed)
    half, day = 5.0 * np.arange(6000), 5.0 * np.arange(17_280)

    def alone(places: Array) -> Trace:
        return places, half[: len(places)]

    stay = generator.normal(0, 15, (3000, 2))
    there = legs(generator, 400, 50, 60)
    phases = np.vstack([stay, there, stay + there[-1], there[::-1], stay])
    recorded = trips(generator, day, 5.0, 3000, 1800)
    moving = np.convolve(np.hypot(*np.gradient(recorded, axis=0).T) > 0.5, np.ones(25), "same") > 0
    return {
        "walk": alone(turning(generator, 6000, 6.5, 0.05)),
        "walk, wandering": alone(turning(generator, 6000, 6.5, 0.3)),
        "walk, streets": alone(streets(generator, half, 1.3, 80, 25) + jitter(generator, 6000)),
        "drive": alone(legs(generator, 6000, 40, 60)),
        "drive, turning": alone(legs(generator, 6000, 75, 30)),
        "drive, motorway": alone(legs(generator, 6000, 125, 200)),
        "drive, streets": alone(streets(generator, half, 9, 150, 30) + jitter(generator, 6000)),
        "stay": alone(stay),
        "stay, drifting": alone(jitter(generator, 6000, 15)),
        "day of phases": (phases, 5.0 * np.arange(len(phases))),
        "commuter": (trips(generator, day, 9, 8000, 14_400) + jitter(generator, 17_280), day),
        "errands on foot": (
            trips(generator, day, 1.3, 1200, 1800) + jitter(generator, 17_280),
            day,
        ),
        "errands, pauses": (recorded[moving], day[moving]),
    }


def by_the_minute(seed: int) -> dict[str, Trace]:
    """Made-up traces with a point a minute."""
    generator = np.random.default_rng(seed)
    seconds = 60.0 * np.arange(4000)
    found = {
        "taxi, straight": legs(generator, 4000, 400, 8),
        "taxi, streets": streets(generator, seconds, 9, 200, 30),
        "taxi, waiting": trips(generator, seconds, 8, 3500, 400),
        "taxi, busy": trips(generator, seconds, 8, 5000, 120),
        "days of a person": trips(generator, seconds, 5, 4000, 3600),
    }
    return {name + MINUTE: (places, seconds) for name, places in found.items()}


def taxis(seed: int, count: int = 2000) -> dict[str, Trace]:
    """A taxi with a point a minute, chained from trips in New York: the nearest fare comes next.

    The trips name no taxi and no way: each goes from where it began to where it ended along the
    two axes of a turned grid, in the time that it took; to the next fare the taxi drives likewise
    at 6 m/s, and it waits for about five minutes, at most half an hour.
    """
    if not TRIPS.exists():
        return {}
    table = pq.read_table(TRIPS)
    east, north = 111_320 * np.cos(np.radians(40.75)), 111_320
    turned = np.exp(1j * np.radians(29))

    def plane(side: str) -> Array:
        lon, lat = (table[f"{side}_{axis}"].to_numpy() for axis in ("lon", "lat"))
        return np.asarray(((lon + 73.97) * east + 1j * (lat - 40.75) * north) * turned)

    begin, end = plane("o"), plane("d")
    left_s, done_s = (table[name].cast("int64").to_numpy() / 1e6 for name in ("pickup", "dropoff"))
    took = done_s - left_s
    speed = np.abs(end - begin) / np.maximum(took, 1)
    good = (took > 60) & (took < 7200) & (np.abs(begin) < 4e4) & (np.abs(end) < 4e4) & (speed < 30)
    generator = np.random.default_rng(seed)
    order = generator.permutation(np.flatnonzero(good))
    seconds = 60.0 * np.arange(count)
    times, places, left = [0.0], [begin[order[0]]], list(order[:6000])
    here = begin[order[0]]
    while times[-1] < seconds[-1]:
        near = np.argsort(np.abs(begin[left] - here))[:20]
        fare = left.pop(int(generator.choice(near)))
        to_fare = np.abs(begin[fare] - here) / 6
        for place, drive in ((begin[fare], to_fare), (end[fare], took[fare])):
            corner = complex(place.real, here.imag)
            part = abs(corner - here) / max(abs(corner - here) + abs(place - corner), 1.0)
            times += [times[-1] + part * drive, times[-1] + float(drive)]
            places += [corner, place]
            here = place
        times.append(times[-1] + min(generator.exponential(300), 1800))
        places.append(here)
    flat = [np.array([place.real, place.imag]) for place in places]
    return {"taxi, New York trips" + MINUTE: (_between(times, flat, seconds), seconds)}
