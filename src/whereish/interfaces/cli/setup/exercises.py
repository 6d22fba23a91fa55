"""Small exercises that, between them, call every kernel: what ``whereish compile`` runs.

Kernels are compiled for the types that they are called with, so the surest way to compile
what people will use is to use it, on a few invented places.  Every mechanism of the registry
reports; what is beside the mechanisms has its exercise here.  ``tests/test_warm_up.py`` fails
where a kernel is called by no exercise, or a command compiles anything after them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module

import numpy as np

from whereish.arrays import FloatArray
from whereish.mechanisms.registry import REGISTRY

__all__ = ["exercises"]

_SITES = np.array([[100.0 * (i % 4), 100.0 * (i // 4)] for i in range(12)])
_PRIOR = np.arange(1.0, 13.0) / 78


def exercises() -> Iterator[tuple[str, Callable[[], object]]]:
    """What is exercised, and the call that does it."""
    for name in REGISTRY:
        yield name, partial(_report, name)
    yield from (
        ("many reports", _many_reports),
        ("served reports", _served_reports),
        ("optimal channels", _optimal_channels),
        ("remaps", _remaps),
        ("privacy maps", _maps),
        ("traces", _traces),
        ("audits", _audits),
        ("studies", _studies),
        ("pictures", _pictures),
    )


def _frozen(values: FloatArray) -> FloatArray:
    """Read-only, as the coordinates of points are: other types to a compiler."""
    values = values.copy()
    values.setflags(write=False)
    return values


def _report(name: str) -> None:
    from whereish.mechanisms.channels.channel import Channel
    from whereish.mechanisms.noise.rounded import RoundedMechanism

    mechanism = REGISTRY[name].built()
    if isinstance(mechanism, RoundedMechanism):
        mechanism.warm()
        zeros = np.zeros((2, mechanism.space.dimension))
        for secrets in (zeros, _frozen(zeros)):
            mechanism.report(secrets)
    elif isinstance(mechanism, Channel):
        mechanism.report(mechanism.secrets.points[:2])


def _many_reports() -> None:
    from whereish.publish.perturb import perturb

    perturb(np.zeros(3000), np.zeros(3000), epsilon="1/km")


def _served_reports() -> None:
    from whereish.mechanisms.noise.globe_laplace import GlobeLaplace
    from whereish.mechanisms.noise.one_by_one import one_by_one

    one_by_one(GlobeLaplace("1/km"))(0.0, 0.0)


def _optimal_channels() -> None:
    from whereish.audit import exact
    from whereish.mechanisms.channels.optimal import optimal_channel
    from whereish.solvers.optimal.large_scale import solve_large
    from whereish.solvers.optimal.local.solve import Neighbourhoods, solve_local
    from whereish.solvers.optimal.programme import ChannelProgramme, Terms
    from whereish.solvers.optimal.start.channels import strictly_private
    from whereish.solvers.optimal.start.passing import early_duals

    for options in ({}, {"dilation": 1.3}, {"loss": "squared"}):
        channel = optimal_channel(_SITES, _PRIOR, "0.01/m", **options)
    channel.report(_SITES[:2])
    distances = np.hypot(*(_SITES[:, None] - _SITES).transpose(2, 0, 1))
    exact(channel.matrix, distances)
    cost = np.ascontiguousarray((_PRIOR[:, None] * distances).T)
    solve_large(ChannelProgramme(cost, 0.01 * distances), Terms(1e-2), most_sweeps=200)
    early_duals(ChannelProgramme(cost, 0.01 * distances))
    along = np.abs(np.subtract.outer(np.arange(40.0), np.arange(40.0)))
    line = ChannelProgramme(along / 40, 2.0 * along)  # of which each output has a part of its own
    solve_local(line, Terms(1e-9), strictly_private(line.metric), Neighbourhoods(line))
    decades = np.c_[np.geomspace(1e-6, 30.0, 30), np.zeros(30)]
    optimal_channel(decades, None, "1/m", gap=1e-2)


def _remaps() -> None:
    from whereish.mechanisms.channels.laplace import laplace_channel
    from whereish.mechanisms.channels.remap import BayesianRemap
    from whereish.mechanisms.noise.grid_remap import bayesian_grid_remap
    from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
    from whereish.space.raster import Raster

    channel = laplace_channel(_SITES, "0.01/m")
    for remap in (BayesianRemap(_PRIOR), BayesianRemap(_PRIOR, anywhere=True)):
        remap.targets(channel)
    noise, raster = PlanarLaplace("0.01/m"), Raster(4, 3, (100, 100))
    bayesian_grid_remap(noise, raster, _PRIOR).expected_distance(noise, _PRIOR)


def _maps() -> None:
    from whereish.mechanisms.maps.eikonal import EikonalMechanism
    from whereish.privacy.maps.privacy_map import PrivacyMap

    rows, columns = np.mgrid[:8, :9]
    smooth = PrivacyMap(1e-3 * (1 + 0.05 * np.sin(rows + columns)), "500 m")
    steep = PrivacyMap(1e-3 * np.where(columns < 4, 1.0, 6.0), "500 m")
    narrow = PrivacyMap(1e-3 * np.where(columns < 4, 1.0, 4.0), "200 m")
    secrets = np.array([[600.0, 600.0], [2100.0, 1700.0]])
    weights = np.ones((8, 9))
    EikonalMechanism.build(smooth, places="cells", frame=3)
    many = 1e-3 * np.where(np.arange(33) < 16, 1.0, 6.0) * np.ones((33, 1))
    EikonalMechanism.build(PrivacyMap(many, "100 m"), places="cells")  # keeps its distances
    for places in ("cells", "continuous", "bilinear"):
        for asked in (smooth, steep, narrow):
            mechanism = EikonalMechanism.build(asked, places=places, prior=weights)
            for padded in (False, True):
                mechanism.report(secrets, padded=padded)
            mechanism.report(secrets[:1])
            mechanism.mse()
            mechanism.mse(weights)
            mechanism.recommended.report(secrets)
            mechanism.recertify()
            mechanism.distribution(secrets[0])


def _traces() -> None:
    from whereish.mechanisms.traces.budget import FixedUtility
    from whereish.mechanisms.traces.predictive import PredictiveMechanism

    steps = np.column_stack([np.linspace(2.3, 2.4, 40), np.full(40, 48.8)])
    session = PredictiveMechanism(FixedUtility("500 m")).start()
    for minute, place in enumerate(steps):
        session.report(place, 60.0 * minute)
    for smooth in (False, True):
        session.release(smooth=smooth)


def _audits() -> None:
    from whereish.audit import density
    from whereish.mechanisms.noise.globe_laplace import GlobeLaplace, undecided_shares
    from whereish.mechanisms.noise.planar_laplace import PlanarLaplace

    density(PlanarLaplace("0.01/m"), _SITES)
    undecided_shares(GlobeLaplace("0.01/m"), 48.0, draws=10)


def _studies() -> None:
    from whereish.solvers.geodesic.fast_marching import fast_marching

    fast_marching(np.ones((4, 4)), (0, 0), 1.0, 1.0)
    seconds = 60.0 * np.arange(6)
    traces = import_module("whereish.studies.trace_floor")  # the last layer, by its name only
    traces.floor(np.column_stack([seconds, seconds]), seconds, [100.0], seed=1)


def _pictures() -> None:
    from whereish.audit.pictures.fonts import keep_fonts

    keep_fonts()
