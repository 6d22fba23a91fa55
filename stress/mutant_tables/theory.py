"""Optimal noise, tails on all radii, noise tables and universal optimality: what is proven of them."""

from __future__ import annotations

from stress.mutant import Mutant

__all__ = ["MUTANTS"]

_ANY = "src/whereish/solvers/radial/any_loss.py"
_TAIL = "src/whereish/solvers/radial/tail.py"
_PAIRS = "src/whereish/solvers/noise/pairs.py"
_DOMAINS = "src/whereish/privacy/domains.py"
_UNIVERSAL = "src/whereish/queries/universal_optimality.py"
_ANY_TESTS = "tests/solvers/radial/test_any_loss.py::"
_TAIL_TESTS = "tests/solvers/radial/test_tail.py::"
_TABLES = "tests/mechanisms/noise/test_function.py::"
_QUERIES = "tests/queries/test_finite_query.py::"

MUTANTS = (
    Mutant(
        "lower bound of a falling loss at its higher end",
        _ANY,
        "least = np.minimum(loss.value(low), loss.value(high)) - price",
        "least = np.maximum(loss.value(low), loss.value(high)) - price",
        (_ANY_TESTS + "test_costs_on_a_slice_are_below_those_of_every_radius_in_it",),
        "the bound is above what noise can reach",
    ),
    Mutant(
        "box of a radial at the nearer end of each step",
        _ANY,
        "np.exp(-np.append(self.hull[1:], self.hull[-1]))",
        "np.exp(-self.hull)",
        (_ANY_TESTS + "test_the_box_holds_every_private_radial",),
        "the lower bound holds for fewer radials than there are",
    ),
    Mutant(
        "half of the box in the dual bound",
        _ANY,
        "return float(np.minimum(residual, 0.0) @ upper)",
        "return float(np.minimum(residual, 0.0) @ upper) / 2",
        (_ANY_TESTS + "test_the_dual_bound_is_that_of_the_linear_programme",),
        "the bound is above what noise can reach",
    ),
    Mutant(
        "tail compared at the far end of an interval",
        _TAIL,
        "if held[a] <= rho[b]:",
        "if held[b] <= rho[b]:",
        (_TAIL_TESTS + "test_excesses_in_single_places_are_found",),
        "an excess between two radii is not seen",
    ),
    Mutant(
        "tail beyond its reach taken at its end",
        _TAIL,
        "top, _quotient(_held(radial, end) * growth * (1 + _MARGIN), tail(end))",
        "top, _quotient(_held(radial, end) * (growth > 0) * (1 + _MARGIN), tail(end))",
        (_TAIL_TESTS + "test_excesses_in_single_places_are_found",),
        "rho may fall faster than the noise beyond its reach",
    ),
    Mutant(
        "survival not rounded up",
        _TAIL,
        "return min(float(radial.survival(radius)) * (1 + _MARGIN), 1.0)",
        "return min(float(radial.survival(radius)) * (1 - 1e-7), 1.0)",
        (_TAIL_TESTS + "test_excesses_in_single_places_are_found",),
        "a tail is exceeded by a little and certified",
    ),
    Mutant(
        "lower bound of undercut limits",
        _TAIL,
        "        if not undercut:\n            lower = max(lower, found.lower_bound)",
        "        lower = max(lower, found.loss)",
        (_TAIL_TESTS + "test_the_lower_bound_is_that_of_limits_that_rho_itself_sets",),
        "the bound is that of a stricter tail",
    ),
    Mutant(
        "tails as steep as the noise",
        _TAIL,
        "if tail.least_rate >= ell.decay:",
        "if tail.least_rate > ell.decay:",
        (_TAIL_TESTS + "test_an_empty_space_is_refused_with_the_reason",),
        "an empty space is refused for another reason than it has",
    ),
    Mutant(
        "ratio of a noise table rounded down",
        _PAIRS,
        "high = _quotient(difference + slip, offset.level) * (1 + _ROUND)",
        "high = _quotient(difference - slip, offset.level) * (1 - _ROUND)",
        (_TABLES + "test_upper_bounds_are_above_the_exact_ratio",),
        "the upper bound of a table's ratio is below it",
    ),
    Mutant(
        "a disk that asks nothing at its diameter",
        _DOMAINS,
        "return ell.restricted(self.diameter)",
        "return ell.restricted(Length(self.diameter.m * 0.999))",
        (
            _TABLES + "test_levels_of_radii_by_trying_all_directions",
            _TABLES + "test_a_disk_and_the_plane_part_where_theorem_6_says_so",
        ),
        "places at opposite ends of the region are not protected",
    ),
    Mutant(
        "differences that radii can only just have",
        _DOMAINS,
        "reached = least <= a + b",
        "reached = least < a",
        (_TABLES + "test_levels_of_radii_by_trying_all_directions",),
        "pairs of radii are left out of the certificate",
    ),
    Mutant(
        "lines that are bent by half",
        _UNIVERSAL,
        "strict=True) if s > SAME",
        "strict=True) if s > 0.55",
        (_QUERIES + "test_a_universally_optimal_mechanism_exists_exactly_where_the_theorem_says",),
        "a mechanism is said to be best for all where two consumers clash",
    ),
    Mutant(
        "conflicts of three answers taken for those of all",
        _UNIVERSAL,
        "short = _shortfall(distances, pair, three)",
        "short = small[2]",
        (
            _QUERIES + "test_random_metrics_are_decided_in_both_directions",
            _QUERIES + "test_conflicts_on_twelve_answers_are_those_of_three",
        ),
        "a channel on three answers may have no extension to all of them",
    ),
)
