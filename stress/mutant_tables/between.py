"""Laws between cells: what a certificate at every place stands on, and how such a law is drawn."""

from __future__ import annotations

from stress.mutant import Mutant

__all__ = ["MUTANTS"]

_BOUND = "src/whereish/solvers/splines/bound.py"
_BLOCKS = "src/whereish/solvers/splines/blocks.py"
_CONTROLS = "src/whereish/solvers/splines/lanes/controls.py"
_SETTLING = "tests/solvers/eikonal/test_settling.py"
_SHARES = "tests/solvers/splines/test_shares.py"
_LANES = "src/whereish/solvers/splines/lanes/code.py"
_LEVELS = "src/whereish/solvers/splines/levels.py"
_COIN = "src/whereish/sampling/spline_coin.py"
_LOWERING = "src/whereish/solvers/eikonal/lowering.py"
_HOLDS = "tests/solvers/eikonal/test_between.py::test_the_certified_slope_holds_at_every_place"
_MEAN = "tests/solvers/splines/test_mean.py::test_the_mean_lies_in_its_enclosure"
_REFUTED = (
    "tests/solvers/eikonal/test_between.py"
    "::test_prices_that_take_the_mean_along_borders_are_refuted"
)
_ERROR = (
    "tests/solvers/splines/test_mean.py"
    "::test_the_error_of_interpolants_is_bounded_and_no_more_than_it_must"
)
_PIECES = (
    "tests/solvers/splines/test_mean.py::test_interpolants_lie_in_the_enclosures_of_sixteenths"
)
_FOURTHS_OF = "tests/solvers/splines/test_mean.py::test_the_slope_is_looked_for_on_every_sixteenth"
_RIM = "tests/solvers/eikonal/test_between.py::test_a_steep_rim_is_seen"
_OPERATIONS = "tests/solvers/splines/test_lanes.py"
_QUARTERS = (
    "tests/solvers/splines/test_quarters.py::test_levels_of_quarters_are_those_of_the_square"
)
_FALLS = "tests/solvers/splines/test_mean.py::test_the_normaliser_may_fall_between_points"
_COINS = "tests/sampling/test_spline.py::test_coins_agree_with_balls_and_leave_open_what_is_close"
_TABLE = "tests/mechanisms/maps/test_landmarks_between.py"

MUTANTS = (
    Mutant(
        "reports beyond the horizon forgotten",
        _BLOCKS,
        "flat[here] = True",
        "flat[here] = False",
        (
            "tests/solvers/splines/test_report_blocks.py"
            "::test_reports_that_are_all_far_count_in_a_proof",
        ),
        "the slope of a report that is far from a place is that of the mean, and not looked at",
    ),
    Mutant(
        "mean slope as if it were quadratic",
        _BOUND,
        "radius[mine] = apart + off",
        "radius[mine] = 0 * apart + off",
        (_MEAN,),
        "the mean slope leaves its enclosure, and the certificate with it",
    ),
    Mutant(
        "mean slope as if it were quadratic on sixteenths",
        _BOUND,
        "radii[here] = apart[:, _DOWN, _ACROSS]",
        "radii[here] = 0 * apart[:, _DOWN, _ACROSS]",
        (_PIECES,),
        "the mean slope leaves its enclosure on sixteenths",
    ),
    Mutant(
        "sixteenths counted along the other axis",
        _BOUND,
        "controls[here] = pieces[:, _DOWN, _ACROSS]",
        "controls[here] = pieces[:, _ACROSS, _DOWN]",
        (_MEAN,),
        "the mean slope of another sixteenth is subtracted",
    ),
    Mutant(
        "an ellipse that reaches beyond the poles",
        _BOUND,
        "phase = change[axis].ravel()[:, None] * np.maximum(b, a * b)",
        "phase = change[axis].ravel()[:, None] * np.maximum(b, a * b) / 2",
        (_ERROR,),
        "the mean slope is not analytic where its bound needs it to be",
    ),
    Mutant(
        "an interpolant with half of its points",
        _BOUND,
        "shrunk = _RADII**-degree",
        "shrunk = _RADII ** -(2 * degree)",
        (_ERROR,),
        "the mean slope is interpolated worse than stated",
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
        "the inner halves of the rim left out in place of the outer",
        _LEVELS,
        "out[0, :, 0], out[-1, :, 1] = True, True",
        "out[0, :, 1], out[-1, :, 0] = True, True",
        (_RIM,),
        "places along two edges of the map are not looked at",
    ),
    Mutant(
        "levels on quarters of sixteenths as if each were the first",
        _LEVELS,
        "down, across = (which // 2) * 0.5, (which % 2) * 0.5",
        "down, across = 0.0, 0.0",
        (_QUARTERS,),
        "slopes are compared with eps somewhere else",
    ),
    Mutant(
        "levels between centres at their highest",
        _LEVELS,
        "fine[a, b] = (1 - s) * line[:, :-1] + s * line[:, 1:]",
        "fine[a, b] = np.maximum(line[:, :-1], line[:, 1:])",
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
        _CONTROLS,
        "V[k], V[_1 + k], V[_2 + k] = west - m0, middle * (west + east) - m1, east - m2",
        "V[k], V[_1 + k], V[_2 + k] = west - m0, west - m1, east - m2",
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
        _CONTROLS,
        "_half(V[part], scratch, 3, 1, which >= 2)",
        "_half(V[part], scratch, 3, 1, True)",
        (_HOLDS, _REFUTED),
        "the southern half of every cell is not looked at",
    ),
    Mutant(
        "the first fourth of a square in place of each",
        _BLOCKS,
        "w0, w1, w2 = _FOURTHS[i, r, 0], _FOURTHS[i, r, 1], _FOURTHS[i, r, 2]",
        "w0, w1, w2 = _FOURTHS[0, r, 0], _FOURTHS[0, r, 1], _FOURTHS[0, r, 2]",
        (_HOLDS, _REFUTED, _FOURTHS_OF),
        "three fourths of every failing cell are not looked at",
    ),
    Mutant(
        "coefficients of degree (2, n) are not counted",
        "src/whereish/solvers/splines/interpolation.py",
        "others[:, :, :3, :, :3] = 0.0",
        "others[:, :, :3] = 0.0",
        (_PIECES,),
        "the interpolant is farther from the quadratic than said",
    ),
    Mutant(
        "moments of the wrong axis",
        _LANES,
        "(mass, mass * across, mass * down)",
        "(mass, mass * down, mass * across)",
        (_MEAN, _HOLDS),
        "the mean slope is another one",
    ),
    Mutant(
        "the least normaliser at the points only",
        _BOUND,
        "found = np.log(mass) - shared - room[:, None, None]",
        "found = np.log(mass) - shared - 0 * room[:, None, None]",
        (_FALLS,),
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
        "return np.asarray(np.maximum(2.0 * self.least - slopes, self.least))",
        "return np.asarray(np.maximum(2.0 * self.least - slopes, self.least / 2))",
        ("tests/solvers/eikonal/test_lowering.py::test_prices_fall_until_any_weights_certify",),
        "a map is lowered by more than its promise needs",
    ),
    Mutant(
        "the last law in place of the best",
        _LOWERING,
        "        if best is None or found.error < least:\n",
        "        if True:\n",
        ("tests/solvers/eikonal/test_lowering.py::test_a_round_that_is_worse_is_not_kept",),
        "a worse law is returned than was found",
    ),
    Mutant(
        "sums aimed at that are thrown away",
        _LOWERING,
        "            aim=aim,\n            tolerance=tolerance,",
        "            aim=None,\n            tolerance=tolerance,",
        ("tests/solvers/eikonal/test_aims.py::test_moved_reports_of_a_narrow_coast_err_less",),
        "maps a few nats wide are poor far out",
    ),
    Mutant(
        "slopes of another law than the table's",
        "src/whereish/solvers/splines/slopes.py",
        "if built.table is not None:",
        "if built.table is not None and not built.law:",
        ("tests/mechanisms/maps/test_forged_tables.py::test_a_table_that_keeps_less_is_refused",),
        "a file's table is drawn from, and the law beside it certified",
    ),
    Mutant(
        "masses of a table in single precision without the mass",
        "src/whereish/solvers/tables/blocks.py",
        "E[:, lane] = shares[report] * masses[row]",
        "E[:, lane] = masses[row]",
        ("tests/solvers/tables/test_between.py::test_blocks_hold_the_law",),
        "the mean of the slopes is that of another law",
    ),
    Mutant(
        "coin of a table that always keeps",
        "src/whereish/sampling/spline_table.py",
        "return found, status == KEPT",
        "return found, status >= 0",
        (_TABLE + "::test_reports_follow_the_geometric_mean_and_no_near_miss",),
        "reports follow the arithmetic mean, which is steeper than what is certified",
    ),
    Mutant(
        "a rise that makes a smooth map steeper is kept",
        "src/whereish/solvers/eikonal/settling.py",
        "self.built, self.shares, self._solved = before\n",
        "_ = before\n",
        (_SETTLING + "::test_a_rise_that_pushes_squares_over_is_taken_back",),
        "smooth maps of many cells are lowered by 2 to 3%",
    ),
    Mutant(
        "what falls, falls alone",
        "src/whereish/solvers/splines/shares.py",
        "np.maximum(slopes, 1.0 + _SPREAD * around)",
        "slopes",
        (_SHARES + "::test_what_is_around_a_steep_point_falls_a_quarter_as_much",),
        "sides push each other over in turn, and finer cells err more",
    ),
    Mutant(
        "a side rises alone",
        "src/whereish/solvers/splines/shares.py",
        "np.clip(_mean_around(part), 1.0, part)",
        "np.maximum(part, 1.0)",
        (_SHARES + "::test_no_side_rises_by_more_than_those_around_and_none_falls",),
        "likewise",
    ),
    Mutant(
        "a bound that is no number is none",
        _LANES,
        'ir.Constant(_FLOAT, float("inf")),',
        "ir.Constant(_FLOAT, 0.0),",
        (_OPERATIONS + "::test_what_is_not_a_number_is_never_small",),
        "what cannot be bounded is certified",
    ),
    Mutant(
        "slopes of far reports as if masses had no tail",
        _LANES,
        "fall = Floats.all(builder, quantum) * near / mass",
        "fall = Floats.all(builder, quantum)",
        (_OPERATIONS + "::test_distances_become_logarithms_and_masses",),
        "rounds lower what is not steep",
    ),
    Mutant(
        "an exponential halved once too seldom",
        _LANES,
        "with cgutils.for_range(builder, halvings):",
        "with cgutils.for_range(builder, builder.lshr(halvings, ir.Constant(halvings.type, 1))):",
        (_OPERATIONS + "::test_sums_and_slopes_at_a_point", _MEAN),
        "the mean slope is another one",
    ),
    Mutant(
        "a digest of an operation's own module alone",
        "src/whereish/compiled/digest.py",
        "for home in _homes(value.home)",
        "for home in [value.home]",
        (
            "tests/test_compiled.py"
            "::test_the_digest_follows_the_code_of_operations_and_what_that_stands_on",
        ),
        "machine code of before is used after what it stands on has changed",
    ),
)
