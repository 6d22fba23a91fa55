"""Optimal mechanisms on 50 regions (section 6.3): quality loss, adversary error, four periods.

OptQL at 1.07 per km with dilation 1.05 is built for everybody's prior; OptPriv and planar Laplace
have the same quality loss under it.  Then each user is attacked with his own prior, in each
period of the day.  The adversary's error of OptQL equals its quality loss under the prior that
it was built for (thesis, Theorem 6.2).
"""

from __future__ import annotations

import numpy as np

from whereish.arrays import FloatArray
from whereish.audit.adversary import adversary_error
from whereish.audit.utility import quality_loss
from whereish.data.user_priors import ALL_DAY, UserPriors
from whereish.mechanisms.channels.channel import Channel
from whereish.mechanisms.channels.laplace import laplace_channel
from whereish.mechanisms.channels.opt_priv import opt_priv_channel
from whereish.mechanisms.channels.optimal import optimal_channel
from whereish.studies.bordenabe.people import checked_in_users, made_up_users
from whereish.studies.figures import COLOURS, figure, panels
from whereish.studies.framework.study import Run, Study

__all__ = ["EPSILON", "STUDY"]

EPSILON = "1.07/km"
_DILATION = 1.05


def _mechanisms(known: UserPriors, quick: bool) -> dict[str, Channel]:
    """OptQL, and two with its quality loss under everybody's prior."""
    prior = known.everyone[ALL_DAY]
    best = optimal_channel(
        known.sites, prior, EPSILON, dilation=_DILATION, gap=1e-3 if quick else 1e-5
    )
    return {
        "OptQL": best,
        "OptPriv": opt_priv_channel(known.sites, prior, most_loss=best.loss),
        "planar Laplace": laplace_channel(known.sites, quality_loss=best.loss, prior=prior),
    }


def _errors(known: UserPriors, channels: dict[str, Channel]) -> dict[str, list[FloatArray]]:
    """By mechanism and period: each user's adversary error in km."""
    found: dict[str, list[FloatArray]] = {name: [] for name in channels}
    for priors in known.priors.values():
        for name, channel in channels.items():
            errors = [adversary_error(channel, prior) / 1000 for prior in priors]
            found[name].append(np.array(errors))
    return found


def _boxes(run: Run, name: str, known: UserPriors, errors: dict[str, list[FloatArray]]) -> None:
    axes = figure("period of the day", "adversary's expected error (km)")
    periods = list(known.priors)
    for index, (kind, values) in enumerate(errors.items()):
        at = np.arange(len(periods)) + (index - 1) * 0.26
        boxes = axes.boxplot(
            values, positions=at, widths=0.22, patch_artist=True, manage_ticks=False
        )
        for box in boxes["boxes"]:
            box.set(facecolor=COLOURS[index], alpha=0.8)
        for line in boxes["medians"]:
            line.set(color="black", linestyle="-")
        axes.plot([], [], "s", color=COLOURS[index], label=kind)
    axes.set_xticks(range(len(periods)), periods)
    axes.set_ylim(0, 1.3 * max(float(v.max()) for values in errors.values() for v in values))
    axes.legend(loc="upper right", ncols=3)
    run.draw(name, axes, f"Figure 6.3: {len(known.users)} users ({name}), their own priors.")


def _one(run: Run, name: str, known: UserPriors) -> None:
    prior = known.everyone[ALL_DAY]
    channels = _mechanisms(known, run.quick)
    loss = quality_loss(channels["OptQL"], prior)
    gap = abs(adversary_error(channels["OptQL"], prior) - loss) / loss
    run.compare(f"{name}-theorem", gap)
    errors = _errors(known, channels)
    given, before, after = known.funnel
    rows = [(kind, *(float(np.median(values)) for values in errors[kind])) for kind in channels]
    run.table(
        f"Median adversary error in km, {name}: users {given} -> {before} -> {after}, quality loss"
        f" {loss / 1000:.4f} km",
        ("mechanism", *known.priors),
        rows,
    )
    _boxes(run, name, known, errors)
    _by_epsilon(run, name, known)


def _by_epsilon(run: Run, name: str, known: UserPriors) -> None:
    """Figure 6.4: quality loss against epsilon."""
    prior = known.everyone[ALL_DAY]
    levels = (0.4, 1.07, 2.0, 4.0) if run.quick else (0.3, 0.5, 0.7, 1.07, 1.5, 2.0, 3.0, 4.0)
    best, laplace = [], []
    for level in run.steps(levels, f"quality loss by eps, {name}"):
        eps = f"{level}/km"
        best.append(
            optimal_channel(known.sites, prior, eps, dilation=_DILATION, gap=1e-3).loss / 1000
        )
        laplace.append(quality_loss(laplace_channel(known.sites, eps), prior) / 1000)
    axes = panels(1, width=6.4, height=4.2)[0]
    axes.plot(levels, best, marker="o", label="OptQL, dilation 1.05")
    axes.plot(levels, laplace, marker="s", label="planar Laplace on the regions")
    axes.set(xlabel="eps (per km)", ylabel="quality loss (km)", ylim=(0, None))
    axes.legend(loc="upper right")
    run.draw(f"{name}-epsilon", axes, f"Figure 6.4: quality loss against eps ({name}).")


def _run(run: Run) -> None:
    _one(run, "made-up", made_up_users(40 if run.quick else 86, run.public))
    real = checked_in_users()
    if real is None:
        run.cannot_compare("new-york-theorem", "the check-ins in New York are not here")
    else:
        _one(run, "new-york", real)
    for name in ("users", "enough", "kept"):
        run.cannot_compare(
            name, "GeoLife is not here: other users stand in, and they are counted in the tables"
        )


STUDY = Study("b-regions", "Optimal mechanisms on 50 regions: Figures 6.3 and 6.4", "B", 63, _run)
