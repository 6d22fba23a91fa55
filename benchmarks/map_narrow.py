"""Laws of narrow maps for a prior: on places as `build` makes them by default, and on cells.

``python -m benchmarks.map_suite narrow SEED [SIZE]`` prints a row for each of a dozen maps of 3 to
20 nats that the seed draws: coasts, tracts and gradients, with uniform priors and people's.
Squared errors are over that of the exponential mechanism at eps/2, all of secrets that are spread
evenly over their cells (a law on cells sees the centre, and has a twelfth of each squared side
more than between centres).
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from benchmarks.map_cities import City, as_map, levels, of_tracts
from whereish.arrays import FloatArray
from whereish.mechanisms.maps.eikonal import EikonalMechanism
from whereish.solvers.eikonal.between import law_between

__all__ = ["narrow", "narrow_maps"]


def _slope(angle: float) -> City:
    """Levels that rise in one direction."""

    def share(x: FloatArray, y: FloatArray, n: int) -> FloatArray:
        along = (x - 0.5) * np.cos(angle) + (y - 0.5) * np.sin(angle)
        return np.asarray(np.clip(0.5 + along / 1.5, 0, 1))

    return share


def narrow_maps(seed: int) -> Iterator[tuple[str, City, tuple[float, float], bool]]:
    """Name, city, range of nats, and whether the prior is people's."""
    rng = np.random.default_rng([seed, 13])
    for number in range(12):
        low = float(np.exp(rng.uniform(np.log(3), np.log(10))))
        high = min(low * float(np.exp(rng.uniform(np.log(1.5), np.log(7)))), 20.0)
        city_seed, tracts = int(rng.integers(2**31)), int(rng.integers(20, 200))
        roughness, shore = float(rng.random()), float(rng.uniform(0.35, 0.8))
        kind = ("coast", "tracts", "gradient")[number % 3]
        city = {
            "coast": of_tracts(city_seed, tracts, roughness, shore, None),
            "tracts": of_tracts(city_seed, tracts, roughness, None, None),
            "gradient": _slope(float(rng.uniform(0, 2 * np.pi))),
        }[kind]
        yield f"{seed}.{number} {kind}", city, (low, high), number % 2 == 1


def narrow(seed: int, size: int) -> None:
    """The rows, then medians and worst cases."""
    print(f"\n== narrow maps that seed {seed} draws, {size} x {size} cells, over exponential eps/2")
    small = as_map(_slope(1.0), 12, (4.0, 8.0))
    for places in ("cells", "continuous"):  # compile
        EikonalMechanism.build(small, places=places, prior=np.ones((12, 12)))  # type: ignore[arg-type]
    found = [_row(*one, size) for one in narrow_maps(seed)]
    names = (
        "eikonal on places, moved",
        "build on places, as drawn",
        "build on places, moved",
        "build on cells, moved",
        "build on places over eikonal, both moved",
        "CPU of build on places, s",
        "CPU of the eikonal law alone, s",
    )
    for name, values in zip(names, np.array(found).T, strict=True):
        print(f"  {name:<42} median {np.median(values):.3f}  worst {values.max():.3f}")


def _row(name: str, city: City, nats: tuple[float, float], people: bool, size: int) -> list[float]:
    asked = as_map(city, size, nats)
    at = levels(city, size, *nats).ravel()
    prior = at / at.min() - 0.9 if people else np.ones(at.size)
    prior /= prior.sum()
    half = EikonalMechanism.exponential(asked)
    spread = sum(side**2 for side in asked.sides) / 12
    whole = half.mse(prior) + spread
    start = time.process_time()
    built = law_between(asked.plane_levels(), asked.sides, prior=prior)
    eikonal = EikonalMechanism(asked, built, "continuous", 32, 1.0, prior)
    alone = time.process_time() - start
    start = time.process_time()
    default = EikonalMechanism.build(asked, prior=prior)
    cpu = time.process_time() - start
    cells = EikonalMechanism.build(asked, places="cells", prior=prior)
    before, after, centres = (
        one.mse(prior, remap=one.posterior_mean(prior)) for one in (eikonal, default, cells)
    )
    before, after, on_cells = before / whole, after / whole, (centres + spread) / whole
    drawn = default.mse(prior) / whole
    comparison = default.built.comparison
    chosen = "eikonal" if comparison is None else comparison.chosen
    if comparison is not None and comparison.unsettled is not None:
        chosen += " at once"
    print(
        f"  {name:<14} {nats[0]:4.1f}-{nats[1]:<4.1f} {'people ' if people else 'uniform'}"
        f"  eikonal moved {before:.3f}; build {drawn:.3f}, moved {after:.3f}"
        f" ({after / before:.3f} of eikonal's), factor {default.factor:.4f};"
        f" cells moved {on_cells:.3f};  {cpu:.1f} s ({alone:.1f} s)  {chosen}",
        flush=True,
    )
    return [before, drawn, after, on_cells, after / before, cpu, alone]
