"""Optimal channels: every bound that a stated gap may rest on, made wrong."""

from __future__ import annotations

from stress.mutant import Mutant

__all__ = ["MUTANTS"]

_OPTIMAL = "src/whereish/solvers/optimal/"
_TESTS = "tests/solvers/optimal/"
_TAILS = _TESTS + "test_local.py::test_tails_alone_prove_what_they_say"
_EXACT = _TESTS + "test_output_generation.py::test_bounds_hold_in_exact_arithmetic"
_LET_GO = _TESTS + "test_coarse.py::test_outputs_that_are_let_go_cost_no_more_than_is_said"
_LACKING = _TESTS + "test_transport.py::test_shortfall_is_true_whatever_the_simplex_method_says"
_DUALS = _TESTS + "test_transport.py::test_duals_from_anywhere_stay_below_the_optimum"

MUTANTS = (
    Mutant(
        "the leader goes on before all is done",
        _OPTIMAL + "crew.py",
        "    while load_word(words, _DONE) < count:\n",
        "    while load_word(words, _DONE) < count - 1:\n",
        (_TESTS + "test_crew.py::test_every_item_is_done_once_and_before_the_next_call",),
        "a sum is taken of what another thread is still writing",
    ),
    Mutant(
        "sums of weighed columns in the multipliers' weight",
        _OPTIMAL + "barrier/systems.py",
        "weighed.columns[begin:end] / np.sqrt(weight[begin:end])",
        "weighed.columns[begin:end] * np.sqrt(weight[begin:end])",
        (
            _TESTS
            + "test_barrier.py::test_a_step_of_weighed_columns_and_outputs_is_that_of_one_dense_matrix",
        ),
        "recombination goes along another direction",
    ),
    Mutant(
        "outputs that lack lower mu by the least that one lacks",
        _OPTIMAL + "local/transport.py",
        "np.max(lacks, axis=(0, 1))",
        "np.min(lacks, axis=(0, 1))",
        (_DUALS,),
        "a bound that the outputs of one call exceed",
    ),
    Mutant(
        "what is sent arrives whole",
        _OPTIMAL + "local/transport.py",
        "(problem.taker, problem.arrives * flow)",
        "(problem.taker, flow)",
        (_LACKING,),
        "a row k_i >= a k_j passes only the part a of its multiplier on",
    ),
    Mutant(
        "what is lacking without rounding",
        _OPTIMAL + "local/transport.py",
        "np.maximum((terms + 8.0) * _EPS * size - reduced, 0.0)",
        "np.maximum(-reduced, 0.0)",
        (_LACKING,),
        "sums of doubles are off by an ulp for each number",
    ),
    Mutant(
        "payments arrive whole",
        _OPTIMAL + "start/passing.py",
        "arrives = closeness[taker, giver] * amount",
        "arrives = amount",
        (_TESTS + "test_transport.py::test_payments_prove_what_they_say",),
        "a row k_i >= a k_j passes only the part a of its multiplier on",
    ),
    Mutant(
        "roundings of payments forgotten",
        _OPTIMAL + "start/passing.py",
        "off[taker] += abs(rest[taker]) + 2.0 * arrives",
        "off[taker] += 0.0",
        (_TESTS + "test_transport.py::test_roundings_of_payments_are_counted",),
        "what rounding may have added is taken off the bound",
    ),
    Mutant(
        "cost of a tail passed on whole",
        _OPTIMAL + "local/kernels.py",
        "reduced[p] += closeness[x, p] * reduced[x]",
        "reduced[p] += reduced[x]",
        (_TAILS,),
        "a row k_x >= a k_p passes only the part a of its multiplier on",
    ),
    Mutant(
        "gain of a tail passed to its parent",
        _OPTIMAL + "local/kernels.py",
        "if p >= 0 and p != x and reduced[x] > 0.0:",
        "if p >= 0 and p != x:",
        (_TAILS,),
        "a multiplier below zero proves nothing",
    ),
    Mutant(
        "gain of a tail taken at less than its price",
        _OPTIMAL + "local/cores.py",
        "y = -reduced[x] / closeness[x, i]",
        "y = -reduced[x] * closeness[x, i]",
        (_TAILS,),
        "the child pays the gain divided by the closeness",
    ),
    Mutant(
        "child that pays half",
        _OPTIMAL + "local/cores.py",
        "reduced[i] -= y",
        "reduced[i] -= 0.5 * y",
        (_TAILS,),
        "what one place gains another one must have",
    ),
    Mutant(
        "bound of cores rounded to nearest",
        _OPTIMAL + "local/kernels.py",
        "reduced[x] - slack * size[x]",
        "reduced[x]",
        (_TESTS + "test_local.py::test_bound_of_cores_holds_in_exact_arithmetic",),
        "doubles that were rounded up are no proof",
    ),
    Mutant(
        "core of one place alone",
        _OPTIMAL + "local/cores.py",
        'kind="stable")[:, :2]',
        'kind="stable")[:, :1]',
        (_TESTS + "test_local.py::test_a_place_far_from_all_others_has_a_core_with_rows",),
        "a place without rows has no multipliers, and the solve ends in an error",
    ),
    Mutant(
        "interior points on cores in a hurry",
        _OPTIMAL + "solve.py",
        "terms.limit_s - terms.seconds < LEAST_LEFT",
        "terms.limit_s - terms.seconds > LEAST_LEFT",
        (_TESTS + "test_local.py::test_cores_are_for_those_who_have_time",),
        "a time limit that is over before there is a bound",
    ),
    Mutant(
        "outputs beaten at the dearest secret alone",
        _OPTIMAL + "start/undominated.py",
        "for x in secrets:",
        "for x in secrets[:1]:",
        (_TESTS + "test_local.py::test_beaten_outputs_change_nothing",),
        "an output that is best for some column is left out",
    ),
    Mutant(
        "outputs let go at twice what is tolerated",
        _OPTIMAL + "start/undominated.py",
        "> tolerated[x]:",
        "> 2.0 * tolerated[x]:",
        (_LET_GO,),
        "the bound is lowered by less than was lost",
    ),
    Mutant(
        "output beaten by one that was let go",
        _OPTIMAL + "start/undominated.py",
        "if not kept[t]:",
        "if t == z:",
        (_TESTS + "test_coarse.py::test_output_that_was_let_go_vouches_for_no_other",),
        "what is tolerated adds up along a chain",
    ),
    Mutant(
        "spare channel beside the whole metric",
        _OPTIMAL + "repair.py",
        "theta = _largest_share(sums, spare.closeness)",
        "theta = _largest_share(sums, programme.closeness)",
        (_TESTS + "test_coarse.py::test_spare_channel_completes_sums_for_less",),
        "what is missing may only use the part of a distance that the spare channel leaves",
    ),
    Mutant(
        "places left out at their whole cost",
        _OPTIMAL + "start/coarse.py",
        "out[z, at] += cost[z, x] * closeness[x, kept[at]]",
        "out[z, at] += cost[z, x]",
        (_TESTS + "test_coarse.py::test_optimum_of_kept_places_is_never_above_and_comes_near",),
        "a place that is left out carries less than the one kept",
    ),
    Mutant(
        "costs of places left out rounded to nearest",
        _OPTIMAL + "start/coarse.py",
        "cost *= 1.0 - (n + _ROUNDINGS) * float(np.finfo(float).eps)",
        "cost *= 1.0",
        (_TESTS + "test_coarse.py::test_moved_costs_are_never_rounded_up",),
        "doubles that were rounded up are no proof",
    ),
    Mutant(
        "outputs let go for nothing",
        _OPTIMAL + "start/coarse.py",
        "float(tolerated.sum()) * (1.0 + 1e-9)",
        "float(tolerated.sum()) * 0.5",
        (_LET_GO,),
        "the bound is lowered by less than was lost",
    ),
    Mutant(
        "bound of few places with what was let go",
        _OPTIMAL + "solve.py",
        "lower = found.lower - coarse.let_go",
        "lower = found.lower",
        (_TESTS + "test_coarse.py::test_what_is_let_go_is_taken_off_the_bound",),
        "the bound is above the optimum",
    ),
    Mutant(
        "bound of the interior point rounded to nearest",
        _OPTIMAL + "interior_point.py",
        "dual = cost[z, x] - pulled[z, x] - off",
        "dual = cost[z, x] - pulled[z, x]",
        (_EXACT,),
        "doubles that were rounded up are no proof",
    ),
    Mutant(
        "absent outputs excluded to nearest",
        _OPTIMAL + "pricing.py",
        "(cost - mu - proof.pulled - off)",
        "(cost - mu - proof.pulled)",
        (_EXACT,),
        "doubles that were rounded up are no proof",
    ),
)
