"""Samplers: what is drawn must be what is proven, to the last bit."""

from __future__ import annotations

from stress.mutant import Mutant

__all__ = ["MUTANTS"]

_MECHANISMS = "src/whereish/mechanisms/"
_TESTS = "tests/mechanisms/"

MUTANTS = (
    Mutant(
        "keys without fresh entropy",
        "src/whereish/randomness.py",
        "_STATE.pack(chain, os.urandom(32), *clocks)",
        "_STATE.pack(chain, bytes(32), *clocks)",
        ("tests/test_randomness.py::test_two_copies_with_the_same_clock_part_by_fresh_bytes",),
        "a restored snapshot adds the same noise again",
    ),
    Mutant(
        "keys without the clocks",
        "src/whereish/randomness.py",
        "_STATE.pack(chain, os.urandom(32), *clocks)",
        "_STATE.pack(chain, os.urandom(32), 0, 0)",
        ("tests/test_randomness.py::test_copies_part_even_where_the_kernel_was_copied_too",),
        "two copies of a whole machine add the same noise",
    ),
    Mutant(
        "uniform on a threshold is decided too early",
        "src/whereish/sampling/thresholds.py",
        "while value == threshold:",
        "while value < threshold - 1:",
        (
            "tests/sampling/test_thresholds.py::test_a_draw_on_a_threshold_is_decided_by_its_next_bits",
        ),
        "64 bits decide where they cannot",
    ),
    Mutant(
        "far tail of the thresholds cut off",
        "src/whereish/sampling/thresholds.py",
        "while self.last is None or met < self.last:",
        "while met < (len(self.table) if self.last is None else self.last):",
        ("tests/sampling/test_thresholds.py::test_the_far_tail_goes_on_unless_the_sequence_ends",),
        "reports far away become impossible, so that seeing one tells all",
    ),
    Mutant(
        "biased uniform integers",
        "src/whereish/sampling/thresholds.py",
        "(again := words < excess)",
        "(again := words > ~excess)",
        ("tests/sampling/test_thresholds.py::test_uniform_below_has_no_bias",),
        "the incomplete last multiple is not where it is looked for",
    ),
    Mutant(
        "ratio of geometric noise rounded down",
        "src/whereish/sampling/thresholds.py",
        "Fraction(-(-bound.numerator * 2**bits // bound.denominator), 2**bits)",
        "Fraction(bound.numerator * 2**bits // bound.denominator, 2**bits)",
        ("tests/sampling/test_thresholds.py::test_exponential_is_an_upper_bound_to_the_last_bit",),
        "neighbouring values differ by more than e^eps",
    ),
    Mutant(
        "level of a ratio rounded to nearest",
        "src/whereish/sampling/thresholds.py",
        "return nearest if nearest >= exact else float(np.nextafter(nearest, np.inf))",
        "return nearest",
        ("tests/sampling/test_thresholds.py::test_logarithm_is_an_upper_bound_to_the_last_bit",),
        "the level that is stated is below the level that is kept",
    ),
    Mutant(
        "coins decided by doubles alone",
        "src/whereish/sampling/selection.py",
        "error = 2.0**-63 / middle + _SLACK * (1 + drawn + wanted)",
        "error = 0 * (middle + _SLACK * (1 + drawn + wanted))",
        ("tests/sampling/test_selection.py::test_coins_beside_the_border_are_what_their_bits_say",),
        "the law of a selection is that of the doubles, not the stated one",
    ),
    Mutant(
        "coins of tiny uniforms decided by doubles",
        "src/whereish/sampling/selection.py",
        "~(np.abs(drawn - wanted) > error) | (words < 2**16)",
        "~(np.abs(drawn - wanted) > error)",
        (
            "tests/sampling/test_selection.py"
            "::test_a_uniform_that_begins_with_64_zeros_may_be_as_small_as_it_takes",
        ),
        "candidates dearer than 44 nats become impossible",
    ),
    Mutant(
        "side and size of geometric noise from one bit",
        _MECHANISMS + "records/geometric.py",
        "self.thresholds.counts(words & _REST, rng)",
        "self.thresholds.counts(words, rng)",
        (_TESTS + "records/test_geometric.py::test_plain_noise_is_unbounded_and_follows_its_law",),
        "the side of the noise tells its size",
    ),
    Mutant(
        "usefulness of the worst value",
        _MECHANISMS + "records/geometric.py",
        "2 if 2 * (steps + 1) <= self.values.top",
        "2 if 2 * (steps + 1) < self.values.top",
        (_TESTS + "records/test_geometric.py::test_usefulness_is_the_worst_row_s",),
        "a usefulness is stated that the middle value does not have",
    ),
    Mutant(
        "inner columns of the truncated law",
        _MECHANISMS + "records/geometric.py",
        "inner = 1 - a\n",
        "inner = (1 - a) * (1 - a)\n",
        (
            _TESTS
            + "records/test_geometric.py::test_the_matrix_keeps_its_metric_exactly_and_tightly",
        ),
        "rows of the stated channel do not sum to one",
    ),
    Mutant(
        "private test at the level of true metres",
        _MECHANISMS + "traces/noisy_test.py",
        "size = -rest.ball().log() / arb(self.level)",
        "size = -rest.ball().log() / arb(self.epsilon.per_m)",
        (_TESTS + "traces/test_noisy_test.py::test_a_stretching_plane_is_charged_in_every_answer",),
        "the stretch of a plane is charged in the guarantee, not in the noise",
    ),
    Mutant(
        "level on a plane not rounded down",
        _MECHANISMS + "traces/noisy_test.py",
        "return math.nextafter(epsilon.per_m / space.scale, 0.0)",
        "return epsilon.per_m / space.scale",
        (_TESTS + "traces/test_noisy_test.py::test_level_on_a_plane_is_rounded_down",),
        "epsilon in true metres is exceeded by a last bit",
    ),
    Mutant(
        "padded draw on the border of two cells",
        "src/whereish/sampling/nearest_first.py",
        "np.int64(total[lane] <= thresholds[lane])",
        "np.int64(total[lane] < thresholds[lane])",
        (_TESTS + "maps/test_eikonal.py::test_padded_draws_take_each_cell_for_exactly_its_mass",),
        "cells without weight are drawn, and the law is not the one proven",
    ),
    Mutant(
        "distance of a private test on the globe",
        _MECHANISMS + "traces/noisy_test.py",
        "(cos_plus * sin_lon) ** 2",
        "(cos_less * sin_lon) ** 2",
        (_TESTS + "traces/test_noisy_test.py::test_distances_are_enclosed",),
        "away from the equator the test compares another distance",
    ),
    Mutant(
        "a step that can pay for its test alone",
        _MECHANISMS + "traces/budget.py",
        "transcript.spent + plan.most <= Fraction(self.total.per_m)",
        "transcript.spent + plan.cost(hard=False) <= Fraction(self.total.per_m)",
        (
            _TESTS + "traces/test_budget.py"
            "::test_a_step_is_planned_only_if_its_noise_can_be_paid_for_too",
        ),
        "a failed test leads to noise beyond the budget",
    ),
    Mutant(
        "a step at a fixed rate that takes more than half",
        _MECHANISMS + "traces/budget.py",
        "most = reserve * float(left) / (1 if first else 1 + self.kappa)",
        "most = reserve * float(left)",
        (
            _TESTS + "traces/test_budget.py"
            "::test_a_step_at_a_fixed_rate_leaves_half_to_those_that_follow",
        ),
        "later reports of a trace are starved",
    ),
    Mutant(
        "hard steps cost their test only",
        _MECHANISMS + "traces/transcript.py",
        "if not hard or self.noise is None:",
        "if hard or self.noise is None:",
        (_TESTS + "traces/test_predictive.py::test_the_guarantee_is_the_sum_actually_spent",),
        "noise is not charged",
    ),
    Mutant(
        "planar level not rounded down",
        _MECHANISMS + "noise/planar_laplace.py",
        "return math.nextafter(self.epsilon.per_m / self.plane.scale, 0.0)",
        "return self.epsilon.per_m / self.plane.scale",
        (
            _TESTS
            + "test_level_rounding.py::test_planar_noise_divides_by_the_scale_and_rounds_down",
        ),
        "epsilon in true metres is exceeded by a last bit",
    ),
    Mutant(
        "planar radius of one exponential number",
        _MECHANISMS + "noise/planar_laplace.py",
        "radius, slip = -math.log(a * b) * scale, ",
        "radius, slip = -math.log(a * a) * scale, ",
        (_TESTS + "noise/test_exact_law.py::test_doubles_and_balls_agree_on_every_cell",),
        "the law that is sampled is not planar Laplace",
    ),
    Mutant(
        "cells decided next to their upper border",
        "src/whereish/sampling/words.py",
        "return not (offset > error and offset < 1 - error)",
        "return not (offset > error and offset < 1)",
        (_TESTS + "noise/test_exact_law.py::test_a_report_on_a_border_is_never_decided_wrongly",),
        "doubles decide cells that they cannot know",
    ),
    Mutant(
        "error of a logarithm sixteen times too small",
        "src/whereish/sampling/words.py",
        "return 2.0**-52 / midpoint if",
        "return 2.0**-56 / midpoint if",
        (
            _TESTS + "noise/test_exact_law.py"
            "::test_the_error_of_a_logarithm_is_bounded_for_small_uniforms",
        ),
        "doubles decide cells that they cannot know, for far reports",
    ),
    Mutant(
        "error of a product's logarithm sixteen times too small",
        "src/whereish/sampling/words.py",
        "return 2.0**-52 * (a + b) / (a * b) if",
        "return 2.0**-56 * (a + b) / (a * b) if",
        (
            _TESTS + "noise/test_exact_law.py"
            "::test_the_error_of_a_product_s_logarithm_is_bounded_for_small_uniforms",
        ),
        "doubles decide cells that they cannot know, for far reports",
    ),
    Mutant(
        "last term of a cosine left out",
        "src/whereish/sampling/words.py",
        "fma(q, fma(q, fma(q, c, -1 / 3628800), 1 / 40320), -1 / 720)",
        "fma(q, fma(q, -1 / 3628800, 1 / 40320), -1 / 720)",
        (_TESTS + "noise/test_exact_law.py::test_the_kernel_pieces_are_within_their_bounds",),
        "directions are off by more than is stated",
    ),
    Mutant(
        "octant of a direction mirrored in balls",
        "src/whereish/sampling/lazy_uniform.py",
        "return -c if octant & 1 else c, -s if octant & 2 else s",
        "return -c if octant & 2 else c, -s if octant & 1 else s",
        (_TESTS + "noise/test_exact_law.py::test_the_kernel_pieces_are_within_their_bounds",),
        "draws that go to balls have another direction than those that do not",
    ),
    Mutant(
        "blocks of noise paid by half of what they cost",
        _MECHANISMS + "traces/transcript.py",
        "min(Fraction(self.used + 1), together)",
        "min(Fraction(self.used + 1), together / 2)",
        (_TESTS + "traces/test_shared_radius.py::test_a_block_is_paid_by_its_beginning",),
        "a trace tells more than it states",
    ),
    Mutant(
        "weights of the hidden radius",
        _MECHANISMS + "traces/shared_radius.py",
        "enumerate((2, 2, 1))",
        "enumerate((2, 1, 1))",
        (_TESTS + "traces/test_shared_radius.py::test_the_weights_are_those_of_the_hidden_radius",),
        "the hidden radius has another law than the proof's",
    ),
    Mutant(
        "hidden radius known to a resumed session",
        _MECHANISMS + "traces/predictive.py",
        "self.transcript.shares = not self.transcript.reports and can_share(noise)",
        "self.transcript.shares = can_share(noise)",
        (
            _TESTS + "traces/test_shared_radius.py"
            "::test_who_goes_on_with_a_transcript_draws_noise_of_its_own",
        ),
        "a block goes on with a radius that nobody has",
    ),
)
