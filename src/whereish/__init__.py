"""whereish: say roughly where someone is, with a proof of how roughly.

All public names live here and load on first use, so that ``import whereish`` is light.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "Basis": "privacy",
    "BayesianRemap": "mechanisms.remap",
    "Box": "space",
    "Channel": "mechanisms.channel",
    "Chebyshev": "privacy",
    "CircularNoise": "mechanisms.circular",
    "CubeGeometric": "mechanisms.cube_geometric",
    "Distinguishability": "privacy.distinguishability",
    "EikonalMechanism": "mechanisms.eikonal",
    "EikonalQuery": "mechanisms.eikonal_query",
    "Epsilon": "units",
    "Euclidean": "privacy",
    "Finite": "privacy",
    "FixedRate": "mechanisms.trace_budget",
    "FixedUtility": "mechanisms.trace_budget",
    "Geodesic": "privacy",
    "GlobeLaplace": "mechanisms.globe_laplace",
    "GreatCircle": "privacy",
    "Guarantee": "privacy",
    "Laplace1D": "mechanisms.manhattan_laplace",
    "Length": "units",
    "Line": "space",
    "Manhattan": "privacy",
    "ManhattanLaplace": "mechanisms.manhattan_laplace",
    "Mechanism": "mechanisms.base",
    "Metric": "privacy",
    "NaiveProfiles": "publish.profiles",
    "OptimalChannel": "mechanisms.optimal",
    "OptimalCircular": "mechanisms.optimal_circular",
    "PlaceLevel": "publish.hierarchy",
    "PlanarLaplace": "mechanisms.planar_laplace",
    "Plane": "space",
    "Points": "space",
    "PredictiveMechanism": "mechanisms.predictive",
    "PriLocation": "publish.profiles",
    "PrivacyMap": "privacy",
    "Profiles": "publish.profiles",
    "Raster": "space",
    "Records": "privacy",
    "SecureRandomness": "randomness",
    "SeededRandomness": "randomness",
    "Sites": "space",
    "SpentBudget": "privacy",
    "Sphere": "space",
    "TruncatedGeometric": "mechanisms.geometric",
    "TupleMax": "privacy",
    "TupleSum": "privacy",
    "TwoSidedGeometric": "mechanisms.geometric",
    "Values": "space",
    "Visits": "publish.priors",
    "WhereishError": "errors",
    "adversary_error": "audit.adversary",
    "answer": "queries",
    "audit": "",
    "bayesian_grid_remap": "mechanisms.grid_remap",
    "bayesian_remap": "mechanisms.remap",
    "cloaking_channel": "mechanisms.cloaking",
    "corrected_epsilon": "mechanisms.planar_laplace",
    "dask": "engines",
    "exponential_channel": "mechanisms.exponential",
    "identity_channel": "mechanisms.cloaking",
    "laplace_channel": "mechanisms.laplace_channel",
    "lattice_distances": "solvers.lattice_metric",
    "nearest_grid_remap": "mechanisms.grid_remap",
    "nearest_remap": "mechanisms.remap",
    "open_ledger": "publish.ledger",
    "opt_priv_channel": "mechanisms.opt_priv",
    "optimal_channel": "mechanisms.optimal",
    "perturb": "publish.report",
    "quality_loss": "audit.utility",
    "queries": "",
    "sanitize": "publish.sanitize",
    "spark": "engines",
    "synthetic_commuters": "publish.commuters",
    "tight_channel": "mechanisms.tight",
    "uniform_channel": "mechanisms.cloaking",
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
