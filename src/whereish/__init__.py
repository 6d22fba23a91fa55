"""whereish: say roughly where someone is, with a proof of how roughly.

    >>> import whereish as wh
    >>> lon, lat = wh.perturb([2.33], [48.85], epsilon="ln(4)/200 m")

Blur points    blur perturb PlanarLaplace GlobeLaplace ManhattanLaplace
               Laplace1D CircularNoise OptimalCircular NoiseFunction
               nearest_remap nearest_grid_remap bayesian_grid_remap
               corrected_epsilon
Publish files  sanitize spark dask open_ledger
Finite places  optimal_channel exponential_channel tight_channel
               laplace_channel opt_priv_channel cloaking_channel
               identity_channel uniform_channel bayesian_remap BayesianRemap
               Channel OptimalChannel BetweenSites lattice_distances
Privacy maps   PrivacyMap map_from_grid EikonalMechanism EikonalQuery
               optimal_map_channel
Use services   nearby PlaceStore MemorySource PinnedPlaces retrieval_radius
               accuracy smallest_epsilon bandwidth_overhead
Saved files    load
Records        Values Records answer queries TruncatedGeometric
               TwoSidedGeometric CubeGeometric
Traces         PredictiveMechanism FixedUtility FixedRate SpentBudget
Profiles       PriLocation NaiveProfiles PooledProfiles Profiles PlaceLevel
               Visits user_priors synthetic_commuters
Service        Client AsyncClient
Audit          audit adversary_error quality_loss privacy_measures
               compare Comparison plot
What is kept   Guarantee Basis Mechanism Metric Euclidean Manhattan Chebyshev
               GreatCircle Geodesic Finite TupleSum TupleMax
               Distinguishability
Where          Plane Sphere Line Box Raster Sites Points
Units, noise   Epsilon Length wanted_level SecureRandomness
               SeededRandomness
Errors         WhereishError and those below it (whereish.errors)

Every name has an example: help(wh.sanitize).  Names load on first use, so that
``import whereish`` is light.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "AsyncClient": "interfaces.client",
    "Basis": "privacy",
    "BayesianRemap": "mechanisms.channels.remap",
    "BetweenSites": "mechanisms.channels.between",
    "Box": "space",
    "Channel": "mechanisms.channels.channel",
    "Chebyshev": "privacy",
    "CircularNoise": "mechanisms.noise.circular",
    "Client": "interfaces.client",
    "Comparison": "audit.comparison",
    "CubeGeometric": "mechanisms.records.cube_geometric",
    "Distinguishability": "privacy.distinguishability",
    "EikonalMechanism": "mechanisms.maps.eikonal",
    "EikonalQuery": "mechanisms.maps.query",
    "Epsilon": "units",
    "Euclidean": "privacy",
    "Finite": "privacy",
    "FixedRate": "mechanisms.traces.budget",
    "FixedUtility": "mechanisms.traces.budget",
    "Geodesic": "privacy",
    "GlobeLaplace": "mechanisms.noise.globe_laplace",
    "GreatCircle": "privacy",
    "Guarantee": "privacy",
    "Laplace1D": "mechanisms.noise.axis_laplace",
    "Length": "units",
    "Line": "space",
    "Manhattan": "privacy",
    "ManhattanLaplace": "mechanisms.noise.axis_laplace",
    "Mechanism": "mechanisms.base",
    "MemorySource": "lbs.sources.memory",
    "Metric": "privacy",
    "NaiveProfiles": "publish.profiles.baselines",
    "NoiseFunction": "mechanisms.noise.function",
    "OptimalChannel": "mechanisms.channels.optimal",
    "OptimalCircular": "mechanisms.noise.optimal_circular",
    "PinnedPlaces": "lbs.pins",
    "PlaceLevel": "publish.profiles.levels",
    "PlaceStore": "lbs.sources.store",
    "PlanarLaplace": "mechanisms.noise.planar_laplace",
    "Plane": "space",
    "Points": "space",
    "PooledProfiles": "publish.profiles.baselines",
    "PredictiveMechanism": "mechanisms.traces.predictive",
    "PriLocation": "publish.profiles.prilocation",
    "PrivacyMap": "privacy",
    "Profiles": "publish.profiles.counts",
    "Raster": "space",
    "Records": "privacy",
    "SecureRandomness": "randomness",
    "SeededRandomness": "randomness",
    "Sites": "space",
    "SpentBudget": "privacy",
    "Sphere": "space",
    "TruncatedGeometric": "mechanisms.records.geometric",
    "TupleMax": "privacy",
    "TupleSum": "privacy",
    "TwoSidedGeometric": "mechanisms.records.geometric",
    "Values": "space",
    "Visits": "data.visits",
    "WhereishError": "errors",
    "accuracy": "lbs.areas",
    "adversary_error": "audit.adversary",
    "answer": "queries",
    "audit": "",
    "bandwidth_overhead": "lbs.areas",
    "bayesian_grid_remap": "mechanisms.noise.grid_remap",
    "bayesian_remap": "mechanisms.channels.remap",
    "blur": "publish.perturb",
    "cloaking_channel": "mechanisms.channels.cloaking",
    "compare": "audit.comparison",
    "corrected_epsilon": "mechanisms.noise.float_noise",
    "dask": "engines",
    "exponential_channel": "mechanisms.channels.exponential",
    "identity_channel": "mechanisms.channels.cloaking",
    "laplace_channel": "mechanisms.channels.laplace",
    "lattice_distances": "privacy.maps.lattice",
    "load": "mechanisms.saved",
    "map_from_grid": "data.density_maps",
    "nearby": "lbs.nearby",
    "nearest_grid_remap": "mechanisms.noise.grid_remap",
    "nearest_remap": "mechanisms.channels.remap",
    "open_ledger": "publish.ledger",
    "opt_priv_channel": "mechanisms.channels.opt_priv",
    "optimal_channel": "mechanisms.channels.optimal",
    "optimal_map_channel": "mechanisms.maps.optimal",
    "perturb": "publish.perturb",
    "plot": "audit.pictures",
    "privacy_measures": "audit.measures",
    "quality_loss": "audit.utility",
    "queries": "",
    "retrieval_radius": "lbs.areas",
    "sanitize": "publish.sanitize",
    "smallest_epsilon": "lbs.areas",
    "spark": "engines",
    "synthetic_commuters": "data.commuters",
    "tight_channel": "mechanisms.channels.tight",
    "uniform_channel": "mechanisms.channels.cloaking",
    "user_priors": "data.user_priors",
    "wanted_level": "mechanisms.wanted_level",
}
"""The module of every public name, sorted; audit is a module itself.

Type checkers read the same names from ``__init__.pyi``.
"""

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'whereish' has no attribute {name!r}")
    value = (
        getattr(import_module(f"whereish.{home}"), name)
        if home
        else import_module(f"whereish.{name}")
    )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
