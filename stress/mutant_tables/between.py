"""Laws between cells: what a certificate at every place stands on, and how such a law is drawn."""

from __future__ import annotations

from stress.mutant import Mutant

__all__ = ["MUTANTS"]

_BOUND = "src/whereish/solvers/splines/bound.py"
_BLOCKS = "src/whereish/solvers/splines/blocks.py"
_COIN = "src/whereish/sampling/spline_coin.py"
_LOWERING = "src/whereish/solvers/eikonal/lowering.py"
_HOLDS = "tests/solvers/eikonal/test_between.py::test_the_certified_slope_holds_at_every_place"
_MEAN = "tests/solvers/splines/test_mean.py::test_the_mean_lies_in_its_enclosure"
_REFUTED = (
    "tests/solvers/eikonal/test_between.py"
    "::test_a_law_that_is_certified_on_cells_alone_is_refuted_between_them"
)
_COINS = "tests/sampling/test_spline.py::test_coins_agree_with_balls_and_leave_open_what_is_close"

MUTANTS = (
    Mutant(
        "mean slope without the fine pieces",
        _BOUND,
        "radius = radius + apart + _LEBESGUE**2 * noise + slope_noise",
        "radius = radius + 0 * apart + _LEBESGUE**2 * noise + slope_noise",
        (_MEAN,),
        "the mean slope leaves its enclosure, and the certificate with it",
    ),
    Mutant(
        "cells that need no look because one slope is small",
        _BOUND,
        "crude = 2.0 * mean.steepest.ravel() / least",
        "crude = 0.9 * mean.steepest.ravel() / least",
        (_HOLDS, _REFUTED),
        "what is known without looking must count both slopes",
    ),
    Mutant(
        "levels between centres at their highest",
        _BOUND,
        "below = np.minimum(middle, 2 * middle - (low + high) / 2)",
        "below = np.maximum(middle, 2 * middle - (low + high) / 2) * 1.2",
        (_HOLDS, _REFUTED),
        "slopes are compared with more than the map allows",
    ),
    Mutant(
        "changes of a law in the cell itself only",
        _BOUND,
        "either = np.maximum(np.maximum(side[:, :-2], side[:, 1:-1]), side[:, 2:])",
        "either = side[:, 1:-1]",
        ("tests/solvers/splines/test_mean.py::test_changes_are_those_of_all_nine_cells",),
        "slopes of the neighbouring columns are not counted",
    ),
    Mutant(
        "the middle of a gradient at its west end",
        _BLOCKS,
        "VX[3 * s + 1, k] = h * (west + east) - mean[3 * s + 1, 0]",
        "VX[3 * s + 1, k] = west - mean[3 * s + 1, 0]",
        (
            "tests/solvers/eikonal/test_between.py"
            "::test_the_bound_is_close_and_nearly_the_whole_map_is_used",
            _HOLDS,
            _REFUTED,
            "tests/solvers/eikonal/test_between.py::test_shares_are_what_a_constant_level_leaves",
        ),
        "the slope inside a cell is another one",
    ),
    Mutant(
        "the upper half of a square in place of the lower",
        _BLOCKS,
        "_half(V, scratch, 3, 1, which >= 2)",
        "_half(V, scratch, 3, 1, True)",
        (_HOLDS, _REFUTED),
        "the southern half of every cell is not looked at",
    ),
    Mutant(
        "moments of the wrong axis",
        _BLOCKS,
        "o[2] += _total(p, q)",
        "o[1] += _total(p, q)",
        (_MEAN, _HOLDS),
        "the mean slope is another one",
    ),
    Mutant(
        "the least normaliser at the nodes only",
        _BOUND,
        "acceptance = _least_normaliser(laws, mass, half, mine, steep * far * 2.0)",
        "acceptance = 1.2 * _least_normaliser(laws, mass, half, mine, 0.0 * steep)",
        (_HOLDS,),
        "padded reports are redrawn more often than stated",
    ),
    Mutant(
        "a coin that needs half of what it must",
        _COIN,
        "need = math.log(total) - mean",
        "need = (math.log(total) - mean) / 2",
        (_COINS, "tests/sampling/test_spline.py::test_reports_follow_the_geometric_mean"),
        "reports follow another law than the one that is certified",
    ),
    Mutant(
        "coins decided by doubles alone between cells",
        _COIN,
        "room += doubt(surprise)",
        "room = 0.0 * room",
        (_COINS,),
        "draws that doubles cannot decide are decided",
    ),
    Mutant(
        "the weight of the middle cell",
        _COIN,
        "Fraction(3, 4) - t * t",
        "Fraction(3, 4) + t * t",
        ("tests/sampling/test_spline.py::test_exact_choices_agree_with_doubles",),
        "rare draws follow another law",
    ),
    Mutant(
        "cells chosen without a doubt",
        _COIN,
        "> nine.error",
        "> -1.0",
        ("tests/sampling/test_spline.py::test_choices_next_to_a_border_are_exact",),
        "draws next to a border of weights are decided by doubles",
    ),
    Mutant(
        "prices lowered to a quarter",
        _LOWERING,
        "return np.asarray(np.maximum(kept - slopes, kept / 2))",
        "return np.asarray(np.maximum(kept - slopes, kept / 4))",
        ("tests/solvers/eikonal/test_lowering.py::test_prices_fall_until_any_weights_certify",),
        "a map is lowered by more than its promise needs",
    ),
    Mutant(
        "the last law in place of the best",
        _LOWERING,
        "            best, least = law, error\n",
        "            best, least = law, min(error, least)\n        best = law\n",
        ("tests/solvers/eikonal/test_lowering.py::test_a_round_that_is_worse_is_not_kept",),
        "a worse law is returned than was found",
    ),
)
