"""Laws in closed form: masses, survival functions, medians."""

from __future__ import annotations

from stress.mutant import Mutant

__all__ = ["MUTANTS"]

_SOLVERS = "src/whereish/solvers/"
_TESTS = "tests/solvers/"

MUTANTS = (
    Mutant(
        "origin on the edge of a rectangle",
        _SOLVERS + "cells/mass.py",
        "np.where(low <= 0, (high - low) / 2, 0.0)",
        "np.where(low < 0, (high - low) / 2, 0.0)",
        (_TESTS + "cells/test_mass.py::test_all_cells_together_hold_everything",),
        "a secret on an edge loses half of its mass",
    ),
    Mutant(
        "quadrature with too few nodes",
        _SOLVERS + "cells/mass.py",
        "np.polynomial.legendre.leggauss(24)",
        "np.polynomial.legendre.leggauss(6)",
        (_TESTS + "cells/test_mass.py",),
        "masses of cells are off by more than certificates allow for",
    ),
    Mutant(
        "ridges cut off eight scales away",
        _SOLVERS + "cells/voronoi.py",
        "_MARGIN = 64.0",
        "_MARGIN = 8.0",
        (_TESTS + "cells/test_voronoi.py::test_two_sites_part_the_plane",),
        "far cells lose their relative accuracy",
    ),
    Mutant(
        "panels too long for the quadrature",
        _SOLVERS + "cells/voronoi.py",
        "_PANEL = 3.0",
        "_PANEL = 30.0",
        (_TESTS + "cells/test_voronoi.py::test_two_sites_part_the_plane",),
        "masses of unbounded cells are off by more than certificates allow for",
    ),
    Mutant(
        "series of psi beyond its radius",
        _SOLVERS + "radial/log_linear.py",
        "small = np.abs(x) < 1",
        "small = np.abs(x) < 8",
        (_TESTS + "radial/test_ratio.py::test_splitting_a_piece_changes_nothing",),
        "masses of steep pieces are wrong in the sixth digit",
    ),
    Mutant(
        "tail of a radial without its start",
        _SOLVERS + "radial/log_linear.py",
        "(start / self.slope + 1 / self.slope**2)",
        "(1 / self.slope**2)",
        (_TESTS + "radial/test_ratio.py::test_splitting_a_piece_changes_nothing",),
        "the tail of circular noise is drawn too rarely",
    ),
    Mutant(
        "candidates struck off within one percent",
        _SOLVERS + "channels/posterior.py",
        "limit = best * (1.0 - 1e-14)",
        "limit = best * (1.0 - 1e-2)",
        (
            _TESTS
            + "channels/test_posterior.py::test_candidates_of_almost_the_same_loss_are_told_apart",
        ),
        "the remap is not the optimal one that quality bounds assume",
    ),
    Mutant(
        "median that walks through a place",
        _SOLVERS + "channels/posterior.py",
        "if inverse == 0.0 or pull <= resting:",
        "if inverse == 0.0:",
        (_TESTS + "channels/test_posterior.py::test_geometric_medians",),
        "Weiszfeld's step leaves a place that is the median itself",
    ),
)
