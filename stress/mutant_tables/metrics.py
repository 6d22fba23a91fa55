"""Metrics, units, spaces, audits and accounts: roundings, orders and caps."""

from __future__ import annotations

from stress.mutant import Mutant

__all__ = ["MUTANTS"]

_SRC = "src/whereish/"
_PRIVACY = "tests/privacy/"

MUTANTS = (
    Mutant(
        "stretched metric not rounded down",
        _SRC + "privacy/norms.py",
        "Scaled((1.0 - 2.0**-50) / scale, self)",
        "Scaled(1.0 / scale, self)",
        (_PRIVACY + "test_privacy.py::test_a_stretched_metric_is_below_to_the_last_bit",),
        "epsilon in true metres is exceeded by a last bit",
    ),
    Mutant(
        "distances from coordinates taken as exact",
        _SRC + "privacy/norms.py",
        "return np.asarray(metric.relative_error + absolute)",
        "return np.asarray(0 * metric.relative_error + absolute)",
        (_PRIVACY + "test_privacy.py::test_the_error_of_computed_distances_covers_their_rounding",),
        "a channel is certified for distances that are not the true ones",
    ),
    Mutant(
        "ratio of scaled metrics rounded to nearest",
        _SRC + "privacy/metric.py",
        "return rounded_up(Fraction(factor) * Fraction(ratio) / Fraction(divisor))",
        "return float(Fraction(factor) * Fraction(ratio) / Fraction(divisor))",
        (_PRIVACY + "test_privacy.py::test_ratios_are_rounded_up",),
        "what is kept is said to be less than it is, by a last bit",
    ),
    Mutant(
        "ratio of a sum rounded to nearest",
        _SRC + "privacy/metric.py",
        "return rounded_up(sum(map(Fraction, ratios), Fraction(0)))",
        "return float(sum(map(Fraction, ratios), Fraction(0)))",
        (_PRIVACY + "test_privacy.py::test_ratios_are_rounded_up",),
        "what is kept is said to be less than it is, by a last bit",
    ),
    Mutant(
        "tuples compared without their size",
        _SRC + "privacy/tuples.py",
        "return 1.0 if isinstance(other, TupleSum) else float(self.size)",
        "return 1.0",
        (_PRIVACY + "test_privacy.py::test_tuples",),
        "what keeps a sum is said to keep a maximum of the same size",
    ),
    Mutant(
        "errors of summed metrics forgotten",
        _SRC + "privacy/metric.py",
        "return sum(part.absolute_error for part in self.parts)",
        "return max(part.absolute_error for part in self.parts)",
        (_PRIVACY + "test_privacy.py::test_errors_of_computed_distances_add_up",),
        "certificates allow for less error than the distances have",
    ),
    Mutant(
        "null next to every value",
        _SRC + "privacy/tuples.py",
        "np.where((i == NULL) == (j == NULL), np.abs(i - j), self.values.top)",
        "np.where((i == NULL) == (j == NULL), np.abs(i - j), 1)",
        (_PRIVACY + "test_tuples.py::test_definitions_by_hand",),
        "a missing value is as far as a neighbour instead of as far as can be",
    ),
    Mutant(
        "ratio of value metrics at one end",
        _SRC + "privacy/tuples.py",
        "ratios = [self.least / other.least, self.greatest / other.greatest]",
        "ratios = [self.least / other.least]",
        (_PRIVACY + "test_tuples.py::test_ratios_are_the_least_ones",),
        "what keeps one metric is said to keep too small a multiple of another",
    ),
    Mutant(
        "diameter of a region not rounded up",
        _SRC + "privacy/tuples.py",
        "math.nextafter(math.hypot(self.region.width, self.region.height), math.inf)",
        "math.hypot(self.region.width, self.region.height)",
        (_PRIVACY + "test_tuples.py::test_the_diameter_of_a_region_is_rounded_up",),
        "the sensitivity of a query is understated by a last bit",
    ),
    Mutant(
        "dilated pieces start too early",
        _SRC + "privacy/distinguishability.py",
        "math.nextafter(start * factor, math.inf) for start",
        "(start * factor) for start",
        (_PRIVACY + "test_distinguishability.py::test_dilation_promises_no_more_to_the_last_bit",),
        "just after a jump more is promised than asked for",
    ),
    Mutant(
        "dilated slopes not rounded down",
        _SRC + "privacy/distinguishability.py",
        "slopes = [math.nextafter(slope / factor, 0.0) for slope in self.slopes]",
        "slopes = [(slope / factor) for slope in self.slopes]",
        (_PRIVACY + "test_distinguishability.py::test_dilation_promises_no_more_to_the_last_bit",),
        "epsilon in true metres is exceeded by a last bit",
    ),
    Mutant(
        "the upper value at a jump counts",
        _SRC + "privacy/distinguishability.py",
        'return self._at(np.asarray(distance, float), "left")',
        'return self._at(np.asarray(distance, float), "right")',
        (
            _PRIVACY + "test_distinguishability.py"
            "::test_at_a_jump_the_lower_value_counts_and_the_limit_is_there_too",
        ),
        "at the end of its reach a promise is none",
    ),
    Mutant(
        "regularity looked at from one side",
        _SRC + "privacy/regularity.py",
        " | _exceeds(after, la_after + lb) | _exceeds(after, la + lb_after)",
        "",
        (_PRIVACY + "test_distinguishability.py::test_irregular_only_just_after_a_jump",),
        "what breaks the triangle inequality just after a jump is called a metric",
    ),
    Mutant(
        "extension to the plane looked at from one side",
        _SRC + "privacy/regularity.py",
        "    if after.any():\n        return Check(False, (float(d[after][0]) + base * 1e-9,))\n",
        "",
        (_PRIVACY + "test_distinguishability.py::test_no_extension_only_just_after_a_jump",),
        "a promise on a region is said to extend to the plane, and does not",
    ),
    Mutant(
        "nautical mile of 1852.1 metres",
        _SRC + "units.py",
        '"nmi": 1852.0',
        '"nmi": 1852.1',
        ("tests/test_units.py::test_units_are_those_of_the_treaties",),
        "a level per nautical mile is another level per metre",
    ),
    Mutant(
        "longitudes wrapped one turn too far",
        _SRC + "space/box.py",
        "np.ceil((self.x_low - wrapped[:, 0]) / 360.0)",
        "np.floor((self.x_low - wrapped[:, 0]) / 360.0)",
        ("tests/space/test_space.py::test_boxes_of_degrees_wrap",),
        "a box across the antimeridian does not hold its own places",
    ),
    Mutant(
        "audit of doubles without their row sums",
        _SRC + "audit/exact.py",
        "(math.log(max(sums)) - math.log(min(sums))) * (1 + 1e-9)",
        "0 * (math.log(max(sums)) - math.log(min(sums)))",
        ("tests/audit/test_audits.py",),
        "rows that sum to 1 up to 1e-9 are audited as if they summed to 1",
    ),
    Mutant(
        "one digest for all remaps",
        _SRC + "publish/release/content.py",
        "return hashlib.sha256(content).hexdigest()",
        "return hashlib.sha256(0 * content).hexdigest()",
        ("tests/publish/release/test_content.py::test_remaps_have_the_digest_of_their_content",),
        "an interrupted job resumes with other roads",
    ),
    Mutant(
        "statistical audit at twice its risk",
        _SRC + "audit/statistical.py",
        "q = float(beta.isf(risk, other + 1, first))",
        "q = float(beta.isf(2 * risk, other + 1, first))",
        (
            "tests/audit/test_statistical.py"
            "::TestRisk::test_the_bound_is_too_high_with_at_most_the_risk_exactly",
        ),
        "honest mechanisms are refuted more often than the confidence says",
    ),
    Mutant(
        "statistical audit with one hit too few",
        _SRC + "audit/statistical.py",
        "q = float(beta.isf(risk, other + 1, first))",
        "q = float(beta.isf(risk, max(other, 1), first))",
        (
            "tests/audit/test_statistical.py"
            "::TestRisk::test_the_bound_is_too_high_with_at_most_the_risk_exactly",
        ),
        "honest mechanisms are refuted more often than the confidence says",
    ),
    Mutant(
        "channel verified for distances taken as exact",
        _SRC + "mechanisms/channels/channel.py",
        "found = largest_ratio(self.weights, distances, distance_error=error)",
        "found = largest_ratio(self.weights, distances, distance_error=0.0)",
        (
            "tests/mechanisms/channels/test_channel.py"
            "::test_verify_allows_for_the_error_of_computed_distances",
        ),
        "a channel that breaks its metric within the error of the distances is verified",
    ),
    Mutant(
        "refund dated now",
        _SRC + "publish/ledger/ledger.py",
        "(release, who, at, eps, -times)",
        "(release, who, self._clock(), eps, -times)",
        ("tests/publish/ledger/test_ledger.py::test_a_refund_is_dated_with_its_charge[sqlite]",),
        "the charge leaves the window before its refund does: a cap of 1/km allows 2/km",
    ),
    Mutant(
        "window that still counts its oldest second",
        _SRC + "publish/ledger/ledger.py",
        '" AND at > ?"',
        '" AND at >= ?"',
        ("tests/publish/ledger/test_ledger.py::test_a_window_slides[sqlite]",),
        "a charge counts longer than its window",
    ),
    Mutant(
        "cap with one part in a million to spare",
        _SRC + "publish/ledger/ledger.py",
        "_SPARE = Fraction(1, 10**12)",
        "_SPARE = Fraction(1, 10**6)",
        ("tests/publish/ledger/test_ledger.py::test_a_cap_is_exceeded_by_one_part_in_a_billion",),
        "a subject's cap is exceeded",
    ),
    Mutant(
        "repeated charges of one subject not added",
        _SRC + "publish/ledger/ledger.py",
        "times[key] = times.get(key, 0) + charge.times",
        "times[key] = charge.times",
        ("tests/publish/ledger/test_ledger.py::test_duplicates_in_one_release_are_added[sqlite]",),
        "a person with many rows pays for one",
    ),
    Mutant(
        "sums of the ledger without their counts",
        _SRC + "publish/ledger/ledger.py",
        "Fraction(eps) * Fraction(times)",
        "Fraction(eps)",
        (
            "tests/publish/ledger/test_ledger.py::test_charges_add_up_to_the_cap_and_no_further[sqlite]",
        ),
        "n reports at one level count as one",
    ),
)
