"""One-dimensional incentives: wealth in [0, 1], reported under three profiles of eps.

Who must hide most is a choice of the map: the same level for all, less noise for the rich, or
less noise for the poor.  The spread of the report by wealth shows whom the noise protects.
"""

from __future__ import annotations

import numpy as np

from whereish.arrays import FloatArray
from whereish.mechanisms.maps.eikonal import EikonalMechanism
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.studies.figures import panels
from whereish.studies.framework.study import Run, Study

__all__ = ["STUDY", "profiles", "spreads"]

_LOW, _HIGH = 10.0, 40.0


def profiles(cells: int) -> dict[str, FloatArray]:
    """eps per unit of wealth, at the middle of each cell."""
    wealth = (np.arange(cells) + 0.5) / cells
    return {
        "same for all": np.full(cells, (_LOW + _HIGH) / 2),
        "falls with wealth": _HIGH - (_HIGH - _LOW) * wealth,
        "rises with wealth": _LOW + (_HIGH - _LOW) * wealth,
    }


def spreads(levels: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Wealth at each cell, and the standard deviation of its report around the truth."""
    cells = len(levels)
    line = PrivacyMap(levels[None], (1 / cells, 1 / cells))
    mechanism = EikonalMechanism.build(line, places="cells")
    wealth = (np.arange(cells) + 0.5) / cells
    reports = mechanism.reports.centres()[:, 0]
    laws = mechanism.centre_laws(np.arange(cells))
    squared = (laws * (reports[None] - wealth[:, None]) ** 2).sum(axis=1)
    return wealth, np.sqrt(squared)


def _run(run: Run) -> None:
    cells = 60 if run.quick else 200
    above, below = panels(2, width=5.0)
    rows = []
    for name, levels in profiles(cells).items():
        wealth, spread = spreads(levels)
        above.plot(wealth, levels, label=name)
        below.plot(wealth, spread, label=name)
        thirds = [float(part.mean()) for part in np.array_split(spread, 3)]
        rows.append((name, *thirds))
    above.set(xlabel="wealth", ylabel="eps (per unit of wealth)", ylim=(0, 55))
    above.set_title("three levels")
    above.legend(loc="upper center", ncols=1)
    below.set(xlabel="wealth", ylabel="root mean squared error of the report")
    below.set_title("spread of the report")
    below.legend(loc="upper center")
    below.set_ylim(0, 1.4 * below.get_ylim()[1])
    run.draw("spread", above, "One-dimensional incentives: eps by wealth, and what it does.")
    head = ("eps", "poorest third", "middle", "richest third")
    run.table("Root mean squared error of the report", head, rows)


STUDY = Study("kp-wealth", "One-dimensional incentives: wealth in [0, 1]", "KP", 4, _run)
