"""Mechanisms side by side: what they cost and what they hide, on one prior, over levels.

Each is measured by its quality loss (expected distance of the report), the adversary's error
(expected distance of a Bayesian adversary's best guess, who knows the prior) and how often he names
the place.  Sites in degrees are put on a plane around them for planar Laplace noise, which lives on
one; the sites are public.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from whereish.arrays import FloatArray
from whereish.audit.adversary import adversary_error, identification
from whereish.audit.utility import quality_loss
from whereish.errors import InvalidInput, NotPrivate, import_extra
from whereish.mechanisms.channels.channel import Channel
from whereish.mechanisms.channels.inputs import PlacesLike, as_secrets
from whereish.results import JsonResult
from whereish.space.prior import as_prior
from whereish.space.sites import Sites
from whereish.space.sphere import Sphere
from whereish.units import Epsilon, Length

__all__ = ["ComparedMechanism", "Comparison", "compare"]

REMAPPED = ", remapped"
NAMES = (
    "optimal",
    "exponential",
    "exponential, remapped",
    "tight",
    "tight, remapped",
    "planar Laplace",
    "planar Laplace, remapped",
    "cloaking",
    "OptPriv",
    "uniform",
    "identity",
)
"""What can be compared.  OptPriv has the loss of the optimal channel, and keeps no epsilon."""

_NOT_PRIVATE = ("cloaking", "OptPriv", "identity")
_WITHOUT_LEVEL = ("cloaking", "uniform", "identity")

Build = Callable[[Sites, FloatArray, Epsilon], Channel]
"""A mechanism of your own: a channel from sites, prior and level."""
Progress = Callable[[str, int, int], None]
"""Called with the name of what is built next, how many are done, and how many there are."""


@dataclass(frozen=True)
class ComparedMechanism(JsonResult):
    """One mechanism's figures at one level.

    `epsilon_per_m` is None for what has no level.  Distances are in metres, `identification` is the
    probability that the adversary names the place.
    """

    mechanism: str
    epsilon_per_m: float | None
    keeps_epsilon: bool
    quality_loss_m: float
    adversary_error_m: float
    identification: float

    @property
    def level(self) -> str:
        """The level for people."""
        return "any" if self.epsilon_per_m is None else str(Epsilon(self.epsilon_per_m))


@dataclass(frozen=True)
class Comparison:
    """What :func:`compare` found: a line for each mechanism and level, and what was left out.

    Examples
    --------
    >>> import whereish as wh
    >>> found = wh.compare([[0, 0], [900, 0], [0, 900]], None, epsilons=["1/km"],
    ...     mechanisms=["exponential", "uniform"])
    >>> found
    Comparison(2 lines: exponential, uniform)
    >>> print(found)
    level    mechanism                     keeps eps       loss  adv. error  named
    1/km     exponential                         yes    551.9 m     551.9 m  45.4%
    any      uniform                             yes    682.8 m     600.0 m  33.3%
    """

    lines: tuple[ComparedMechanism, ...]
    left_out: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[ComparedMechanism]:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def __repr__(self) -> str:
        names = dict.fromkeys(line.mechanism for line in self.lines)
        return f"Comparison({len(self.lines)} lines: {', '.join(names)})"[:300]

    def __str__(self) -> str:
        head = ("level", "mechanism", "keeps eps", "loss", "adv. error", "named")
        rows = [
            (
                line.level,
                line.mechanism,
                "yes" if line.keeps_epsilon else "no",
                f"{line.quality_loss_m:.1f} m",
                f"{line.adversary_error_m:.1f} m",
                f"{line.identification:.1%}",
            )
            for line in self.lines
        ]
        text = [
            f"{a:<8.8} {b:<28.28} {c:>10} {d:>10} {e:>11} {f:>6}".rstrip()
            for a, b, c, d, e, f in (head, *rows)
        ]
        notes = [textwrap.fill(f"left out: {one}", 79) for one in self.left_out]
        return "\n".join([*text, *notes])

    def to_json(self) -> dict[str, Any]:
        """Plain numbers and words."""
        return {"lines": [asdict(line) for line in self.lines], "left_out": list(self.left_out)}

    def to_frame(self) -> Any:
        """A pandas frame with a row for each mechanism and level."""
        pandas = import_extra("pandas", "frames")
        return pandas.DataFrame([asdict(line) for line in self.lines])

    def to_latex(self) -> str:
        """A table for a paper, with booktabs; distances in metres."""
        rows = [
            " & ".join(
                (
                    _tex(line.level),
                    _tex(line.mechanism),
                    "yes" if line.keeps_epsilon else "no",
                    f"{line.quality_loss_m:.1f}",
                    f"{line.adversary_error_m:.1f}",
                    f"{100 * line.identification:.1f}",
                )
            )
            + r" \\"
            for line in self.lines
        ]
        head = (
            r"level & mechanism & keeps $\varepsilon$ & quality loss (m) & adversary error (m)"
            r" & identified (\%) \\"
        )
        start = [r"\begin{tabular}{llcrrr}", r"\toprule", head, r"\midrule"]
        return "\n".join([*start, *rows, r"\bottomrule", r"\end{tabular}"])

    def plot(self, path: str | Path | None = None) -> Any:
        """A figure of quality loss against adversary error, saved where `path` says.

        As .png, .svg or .pdf; needs the `plot` extra.
        """
        from whereish.audit.pictures.comparison import draw_comparison
        from whereish.audit.pictures.figure import saved

        return saved(draw_comparison(self), path)


def compare(
    sites: PlacesLike,
    prior: ArrayLike | None,
    *,
    epsilons: Sequence[Epsilon | str],
    mechanisms: Sequence[str] | Mapping[str, Build] | None = None,
    gap: float = 1e-3,
    zone: Length | str | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare finite mechanisms on the same sites and prior, at each of several levels.

    Parameters
    ----------
    sites, prior
        Where people may be, and how probably; None is uniform.
    epsilons
        The levels, such as ["0.5/km", "1/km"].
    mechanisms
        Some of :data:`NAMES`, by default all that the sites allow; or names with functions of
        (sites, prior, epsilon) that build a channel.
    gap
        The certified relative gap of the optimal channel.
    zone
        The side of square zones for cloaking, which is left out otherwise; for sites in metres.
    progress
        Called before each mechanism is built.

    Raises
    ------
    InvalidInput
        If a name is unknown, or there is no level.

    Examples
    --------
    >>> import whereish as wh
    >>> sites = [[0, 0], [900, 0], [0, 900], [900, 900]]
    >>> found = wh.compare(sites, [0.7, 0.1, 0.1, 0.1], epsilons=["1/km", "2/km"])
    >>> losses = [line.quality_loss_m for line in found if line.mechanism == "optimal"]
    >>> losses[1] < losses[0]
    True
    """
    places = as_secrets(sites)
    if zone is not None and isinstance(places.points.space, Sphere):
        raise InvalidInput("zone (or --zone) needs sites with x and y in metres")
    zone = None if zone is None else Length.positive(zone, name="zone")
    p = as_prior(prior, len(places))
    levels = [Epsilon.of(one) for one in epsilons]
    if isinstance(epsilons, str) or not levels:
        raise InvalidInput("epsilons must be a list of levels, such as ['0.5/km', '1/km']")
    builders = _builders(mechanisms, gap, zone)
    planned = [
        (name, None if name in _WITHOUT_LEVEL else level)
        for level in levels
        for name in builders
        if name not in _WITHOUT_LEVEL or level == levels[0]
    ]
    planned.sort(key=lambda entry: entry[1] is None)
    lines, left_out = [], []
    for done, (name, level) in enumerate(planned):
        if progress is not None:
            progress(name, done, len(planned))
        try:
            channel = builders[name](places, p, levels[0] if level is None else level)
        except (InvalidInput, NotPrivate) as refusal:
            left_out.append(f"{name}{'' if level is None else f' at {level}'}: {refusal}")
            continue
        lines.append(
            ComparedMechanism(
                name,
                None if level is None else level.per_m,
                name not in _NOT_PRIVATE,
                quality_loss(channel, p),
                adversary_error(channel, p),
                identification(channel, p).after,
            )
        )
    return Comparison(tuple(lines), tuple(left_out))


def _builders(
    mechanisms: Sequence[str] | Mapping[str, Build] | None, gap: float, zone: Length | None
) -> dict[str, Build]:
    if isinstance(mechanisms, Mapping):
        return dict(mechanisms)
    if isinstance(mechanisms, str):
        raise InvalidInput("mechanisms must be a list of names, such as ['optimal', 'exponential']")
    names = list(NAMES) if mechanisms is None else list(mechanisms)
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise InvalidInput(f"mechanisms must be some of {', '.join(NAMES)}; got {unknown[0]!r}")
    if mechanisms is None and zone is None:
        names.remove("cloaking")
    optima: dict[Epsilon, Any] = {}

    def optimal(sites: Sites, prior: FloatArray, epsilon: Epsilon) -> Any:
        from whereish.mechanisms.channels.optimal import optimal_channel

        if epsilon not in optima:
            optima[epsilon] = optimal_channel(sites, prior, epsilon, gap=gap)
        return optima[epsilon]

    return {name: _builder(name, optimal, zone) for name in names}


def _builder(name: str, optimal: Build, zone: Length | None) -> Build:
    from whereish.mechanisms.channels.cloaking import identity_channel, uniform_channel
    from whereish.mechanisms.channels.exponential import exponential_channel
    from whereish.mechanisms.channels.opt_priv import opt_priv_channel
    from whereish.mechanisms.channels.remap import BayesianRemap
    from whereish.mechanisms.channels.tight import tight_channel

    if name.endswith(REMAPPED):
        inner = _builder(name.removesuffix(REMAPPED), optimal, zone)
        return lambda sites, prior, eps: inner(sites, prior, eps) >> BayesianRemap(prior)
    simple: dict[str, Build] = {
        "optimal": optimal,
        "exponential": lambda sites, _, eps: exponential_channel(sites, eps),
        "tight": lambda sites, _, eps: tight_channel(sites, eps),
        "planar Laplace": lambda sites, _, eps: _laplace(sites, eps),
        "cloaking": lambda sites, prior, _: _cloaking(sites, prior, zone),
        "OptPriv": lambda sites, prior, eps: opt_priv_channel(
            sites, prior, most_loss=quality_loss(optimal(sites, prior, eps), prior)
        ),
        "uniform": lambda sites, _, __: uniform_channel(sites),
        "identity": lambda sites, _, __: identity_channel(sites),
    }
    return simple[name]


def _laplace(sites: Sites, epsilon: Epsilon) -> Channel:
    """Planar Laplace noise on the sites; those in degrees on a plane around them."""
    from whereish.mechanisms.channels.laplace import laplace_channel
    from whereish.privacy.norms import GreatCircle
    from whereish.space.plane import Plane

    if not isinstance(sites.points.space, Sphere):
        return laplace_channel(sites, epsilon)
    lon, lat = sites.coordinates.T
    middle = (float(lon.min() + lon.max()) / 2, float(lat.min() + lat.max()) / 2)
    away = GreatCircle()(np.broadcast_to(middle, sites.coordinates.shape), sites.coordinates)
    plane = Plane.around(*middle, Length(1.1 * float(away.max()) + 100.0))
    return laplace_channel(Sites(plane.from_degrees(lon, lat)), epsilon)


def _cloaking(sites: Sites, prior: FloatArray, zone: Length | None) -> Channel:
    from whereish.mechanisms.channels.cloaking import cloaking_channel
    from whereish.space.plane import Plane

    if zone is None or not isinstance(sites.points.space, Plane):
        raise InvalidInput("cloaking needs zone (or --zone) and sites with x and y in metres")
    corner = np.floor(sites.coordinates / zone.m)
    _, label = np.unique(corner, axis=0, return_inverse=True)
    return cloaking_channel(sites, label.ravel(), prior=prior)


def _tex(text: str) -> str:
    return text.replace("%", r"\%").replace("_", r"\_")
