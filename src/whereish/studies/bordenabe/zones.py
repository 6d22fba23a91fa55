"""Planar Laplace against cloaking (Figures 5.14 to 5.17): 9 x 9 cells of 100 m, zones of 3 x 3.

Both have the same quality loss; the adversary's expected error decides.  Figure 5.15, which
draws the priors, has no numbers in the text, so three are declared here: a disk of 250 m around
the middle, the middle row, and the middle zone.  Experiment 5.17 asks instead what a service with
rad_I = 200 m, rad_R = 200 + 150 sqrt 2 m and confidence 0.99 leaves to either.
"""

from __future__ import annotations

import math

import numpy as np

from whereish.arrays import FloatArray
from whereish.audit.adversary import adversary_error
from whereish.audit.utility import quality_loss
from whereish.mechanisms.channels.channel import Channel
from whereish.mechanisms.channels.cloaking import cloaking_channel
from whereish.mechanisms.channels.laplace import laplace_channel
from whereish.mechanisms.channels.opt_priv import opt_priv_channel
from whereish.privacy.metric import Scaled
from whereish.space.raster import Raster
from whereish.studies.figures import HEAT, figure, panels
from whereish.studies.framework.study import Run, Study
from whereish.units import Epsilon

__all__ = ["CELLS", "STUDY", "ZONES", "priors", "retrieval_epsilon"]

CELLS = Raster(9, 9, (100.0, 100.0))
ZONES = np.add.outer(3 * (np.arange(9) // 3), np.arange(9) // 3).ravel()
_PRINTED = Epsilon(0.0162)


def priors() -> dict[str, FloatArray]:
    """The declared priors, and the uniform one."""
    centres = CELLS.centres()
    distance = np.hypot(*(centres - 450.0).T)
    chosen = {
        "uniform": np.ones(len(CELLS)),
        "disk": distance <= 250.0,
        "row": centres[:, 1] == 450.0,
        "zone": ZONES == 4,
    }
    return {name: np.asarray(p / p.sum(), dtype=np.float64) for name, p in chosen.items()}


def retrieval_epsilon() -> float:
    """eps with C_eps(150 sqrt 2) = 0.99, in 1/m: Gamma(2)'s quantile over the distance."""
    from scipy.special import gammaincinv

    return float(gammaincinv(2.0, 0.99)) / (150 * math.sqrt(2))


def _run(run: Run) -> None:
    cloaking = cloaking_channel(CELLS, ZONES)
    laplace = laplace_channel(CELLS, _PRINTED)
    exact = (400 + 400 * math.sqrt(2)) / 9
    loss = quality_loss(cloaking, None)
    run.compare(
        "cloaking",
        loss,
        reason=f"a zone has 4 cells at 100 m and 4 at 100 sqrt 2 m of 9: {exact:.5f} m exactly,"
        f" and ours is {abs(loss - exact):.1g} m from it",
    )
    run.compare("laplace", quality_loss(laplace, None))
    equal = laplace_channel(CELLS, quality_loss=loss)
    assert isinstance(equal.guarantee.metric, Scaled)
    run.compare("epsilon", equal.guarantee.metric.factor)
    _equal_loss(run, cloaking, equal, loss)
    _retrieval(run, cloaking)


def _equal_loss(run: Run, cloaking: Channel, laplace: Channel, loss: float) -> None:
    """Adversary errors at the uniform prior's loss of cloaking (Figure 5.16)."""
    uniform = opt_priv_channel(CELLS, None, most_loss=loss)
    rows: list[tuple[str, float, float, float, float]] = []
    wins = []
    for name in run.steps(list(priors()), "priors of Figure 5.16"):
        prior = priors()[name]
        own = opt_priv_channel(CELLS, prior, most_loss=loss) if name != "uniform" else uniform
        errors = [adversary_error(k, prior) for k in (cloaking, laplace, own, uniform)]
        rows.append((name, errors[0], errors[1], errors[2], errors[3]))
        if errors[0] > errors[1]:
            wins.append(name)
    head = ("prior", "cloaking", "planar Laplace", "OptPriv, own prior", "OptPriv, uniform prior")
    run.table("Adversary error in metres at equal quality loss under the uniform prior", head, rows)
    won = ", ".join(name for name in wins if name != "uniform")
    run.note(
        f"At equal quality loss the adversary errs more under cloaking than under planar Laplace on"
        f" these declared priors: {won or 'none'}. Where the support of a prior is made of whole"
        " zones, cloaking hides all that the prior leaves open within them."
    )
    _draw_priors(run)
    _draw_errors(run, head, rows)


def _draw_priors(run: Run) -> None:
    kinds = {name: p for name, p in priors().items() if name != "uniform"}
    drawn = panels(len(kinds), width=3.4, height=3.4)
    for axes, (name, prior) in zip(drawn, kinds.items(), strict=True):
        axes.pcolormesh(
            100 * np.arange(10),
            100 * np.arange(10),
            prior.reshape(9, 9),
            cmap=HEAT,
            rasterized=True,
        )
        for edge in (300, 600):
            axes.axhline(edge, color="white", linestyle="-", linewidth=1)
            axes.axvline(edge, color="white", linestyle="-", linewidth=1)
        axes.set(
            aspect="equal", xlabel="metres east", ylabel="metres north", title=f"prior: {name}"
        )
        axes.grid(False)
    run.draw("priors", drawn[0], "The declared priors (yellow: equally likely), and the zones.")


def _draw_errors(
    run: Run, head: tuple[str, ...], rows: list[tuple[str, float, float, float, float]]
) -> None:
    axes = figure("prior", "adversary's expected error (m)")
    for index, name in enumerate(head[1:]):
        at = np.arange(len(rows)) + (index - 1.5) * 0.2
        axes.bar(at, [row[index + 1] for row in rows], 0.2, label=name)
    axes.set_xticks(range(len(rows)), [row[0] for row in rows])
    axes.set_ylim(0, 1.35 * max(max(row[1:]) for row in rows))
    axes.legend(loc="upper center", ncols=2)
    run.draw("errors", axes, "Figure 5.16: adversary error at equal quality loss.")


def _retrieval(run: Run, cloaking: Channel) -> None:
    """Experiment 5.17: the epsilon that the two radii leave, and who wins on the disk."""
    solved, printed = retrieval_epsilon(), run.published_value("lbs-epsilon")
    run.compare(
        "lbs-epsilon",
        solved,
        reason=f"C_eps(150 sqrt 2 m) = 0.99 holds at {solved:.4f} per metre; at {printed:g} the"
        f" report is within 150 sqrt 2 m with probability {_covered(printed):.3f}",
    )
    disk = priors()["disk"]
    of_cloaking = adversary_error(cloaking, disk)
    errors = {
        level: adversary_error(laplace_channel(CELLS, Epsilon(level)), disk)
        for level in (solved, printed)
    }
    run.compare(
        "disk-advantage",
        errors[solved] - of_cloaking,
        reason=f"at the epsilon that solves the equation planar Laplace's adversary errs by"
        f" {errors[solved]:.1f} m against cloaking's {of_cloaking:.1f} m; at the printed"
        f" {printed:g} it is {errors[printed]:.1f} m: the conclusion turns round",
    )
    levels = np.geomspace(0.008, 0.04, 9 if run.quick else 25)
    axes = figure("epsilon of planar Laplace (per metre)", "adversary's expected error (m)")
    curve = [adversary_error(laplace_channel(CELLS, Epsilon(eps)), disk) for eps in levels]
    axes.plot(levels, curve, label="planar Laplace, disk prior")
    axes.axhline(of_cloaking, color="#d55e00", linestyle="--", label="cloaking, disk prior")
    for level, style, name in ((printed, ":", "printed"), (solved, "-.", "by the equation")):
        axes.axvline(level, color="0.4", linestyle=style, label=f"{level:.4f}, {name}")
    axes.legend(loc="upper center")
    run.draw("retrieval", axes, "Experiment 5.17: who wins depends on which epsilon is meant.")


def _covered(level: float) -> float:
    from scipy.special import gammainc

    return float(gammainc(2.0, level * 150 * math.sqrt(2)))


STUDY = Study("b-zones", "Planar Laplace against cloaking: Figures 5.14 to 5.17", "B", 514, _run)
