"""Noise functions of any shape: l-privacy of all pairs, regulation, circles, regions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import erf

import whereish as wh
from whereish.errors import InvalidInput, NotPrivate
from whereish.privacy.distinguishability import Distinguishability
from whereish.privacy.domains import Disk, FinitePlaces, WholePlane, domain_of
from whereish.solvers.noise.lattice import LatticeLogs
from whereish.solvers.radial.log_linear import LogLinear, from_table
from whereish.solvers.radial.loss import Loss
from whereish.solvers.radial.places import radial_ratio_on
from whereish.units import Length

STEP = 100.0
PROMISES = [
    Distinguishability.location("250 m", 1.0),
    Distinguishability.table([0, 150, 400], [0.5, 0.9, 2.0], beyond="unlimited"),
    Distinguishability.stairs("100 m", 0.4, base=0.3).restricted("330 m"),
]
SQUARE, DISTANCE = Loss.power(2), Loss.power(1)
BELL = Loss.of(lambda r: -np.expm1(-((r / 230.0) ** 2)))


def brute_ratio(table: LatticeLogs, ell: Distinguishability, diameter: float) -> float:
    """The least t over all pairs of cells within six rings, offset by offset."""
    a, b = (half + 6 for half in table.halves)
    logs = table.at(np.arange(-a, a + 1)[:, None], np.arange(-b, b + 1)[None])
    most = math.ceil(diameter / STEP) + 1
    found = 0.0
    for dx, dy in itertools.product(range(most + 1), range(-most, most + 1)):
        gap = STEP * math.hypot(max(dx - 1, 0), max(abs(dy) - 1, 0))
        level = float(ell.after(gap))
        if (dx, dy) == (0, 0) or gap >= diameter or math.isinf(level):
            continue
        pairs = [
            abs(logs[i + dx, j + dy] - logs[i, j])
            for i in range(logs.shape[0] - dx)
            for j in range(max(-dy, 0), logs.shape[1] - max(dy, 0))
        ]
        found = max(found, max(pairs) / level)
    return found


@cache
def private_tables() -> list[tuple[np.ndarray, float, Distinguishability]]:
    """Random tables, their tails, and what they keep exactly, by brute force."""
    made = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        ell = PROMISES[seed % len(PROMISES)]
        shape = (1 + 2 * int(rng.integers(0, 3)), 1 + 2 * int(rng.integers(0, 3)))
        logs = rng.normal(size=shape) * rng.choice([0.2, 1.0])
        decay = float(rng.uniform(1.5, 3.0))
        ratio = brute_ratio(LatticeLogs(logs, STEP, decay), ell, ell.starts[-1])
        made.append((np.exp(logs), decay, ell.scaled(ratio)))
    return made


def test_random_private_tables_are_certified_and_slightly_less_private_ones_refused():
    for values, decay, ell in private_tables():
        noise = wh.NoiseFunction(values, f"{STEP} m", decay=decay)
        assert noise.certify(ell.scaled(1 + 1e-9)).lower == pytest.approx(1, abs=2e-9)
        broken = noise.ratio(ell.scaled(1 - 1e-6))
        assert broken.refuted
        u, v = broken.witness
        apart = float(np.log(noise(u) / noise(v)))
        assert apart > float(ell.scaled(1 - 1e-6)(math.dist(u, v)))


def test_upper_bounds_are_above_the_exact_ratio():
    """In fractions of the doubles that the table holds, for the worst pair of cells."""
    for values, decay, ell in private_tables()[:12]:
        noise = wh.NoiseFunction(values, f"{STEP} m", decay=decay)
        table = noise.table
        span = range(-max(table.halves) - 4, max(table.halves) + 5)
        cells = list(itertools.product(span, repeat=2))
        logs = {cell: float(table.at(*cell)) for cell in cells}
        worst = Fraction(0)
        for (a, one), (b, two) in itertools.permutations(logs.items(), 2):
            gap = STEP * math.hypot(max(abs(a[0] - b[0]) - 1, 0), max(abs(a[1] - b[1]) - 1, 0))
            level = float(ell.after(gap)) if gap < ell.starts[-1] else math.inf
            if math.isfinite(level) and one > two:
                worst = max(worst, (Fraction(one) - Fraction(two)) / Fraction(level))
        found = noise.ratio(ell)
        assert Fraction(found.lower) <= worst <= Fraction(found.upper)
        assert found.upper <= float(worst) * (1 + 1e-9)


@pytest.mark.parametrize("loss", [SQUARE, DISTANCE, BELL], ids=["square", "distance", "bell"])
def test_circles_have_the_same_loss_as_the_tables(loss):
    worst = 0.0
    for values, _, _ in private_tables():
        noise = wh.NoiseFunction(values, f"{STEP} m", decay=3.0)
        of_cells, of_circles = noise.expected_loss(loss), noise.circularised().expected_loss(loss)
        worst = max(worst, abs(of_circles / of_cells - 1))
    assert worst < 1e-12


def test_a_table_that_is_refused_is_refused_by_name():
    values, decay, ell = private_tables()[3]
    noise = wh.NoiseFunction(values, f"{STEP} m", decay=decay)
    with pytest.raises(NotPrivate, match=r"does not keep .* the vectors .* m and .* m differ"):
        noise.certify(ell.scaled(1 - 1e-6))


def test_the_loss_of_cells_has_closed_forms():
    """r^2 has moments of squares, a bell products of error functions: no quadrature in either."""
    for values, decay, _ in private_tables()[:40]:
        noise = wh.NoiseFunction(values, f"{STEP} m", decay=decay)
        a, b = (half + noise.table.rings for half in noise.table.halves)
        x, y = STEP * np.arange(-a, a + 1)[:, None], STEP * np.arange(-b, b + 1)[None]
        weights = np.exp(noise.table.padded(noise.table.rings))
        weights /= weights.sum()
        square = float((weights * (x**2 + y**2 + STEP**2 / 6)).sum())
        assert noise.expected_loss(SQUARE) == pytest.approx(square, rel=1e-12)

        def side(at):
            ends = erf((at + STEP / 2) / 230.0) - erf((at - STEP / 2) / 230.0)
            return 230.0 * math.sqrt(math.pi) / 2 * ends / STEP

        bell = 1 - float((weights * side(x) * side(y)).sum())
        assert noise.expected_loss(BELL) == pytest.approx(bell, rel=1e-12)


def test_circles_of_private_tables_are_private():
    """Theorem 5, against the radii themselves: the certificate comes from the table alone."""
    rng = np.random.default_rng(5)
    for values, decay, ell in private_tables():
        noise = wh.NoiseFunction(values, f"{STEP} m", decay=decay)
        certificate = noise.circularised().ratio(ell.scaled(1 + 1e-9))
        assert certificate.holds
        radii = np.concatenate([[0.0], rng.uniform(0, 900, 24), STEP * np.arange(1, 9)])
        logs = np.log(noise.circularised()(radii))
        allowed = ell(np.abs(radii[:, None] - radii))
        assert (logs[:, None] - logs <= allowed * (1 + 1e-9) + 1e-12).all()


def test_a_circle_s_mean_is_the_mean_over_its_directions():
    values, decay, _ = private_tables()[7]
    noise = wh.NoiseFunction(values, f"{STEP} m", decay=decay)
    angles = 2 * math.pi * (np.arange(400_000) + 0.5) / 400_000
    for radius in (20.0, 90.0, 150.0, 317.0):
        around = radius * np.column_stack([np.cos(angles), np.sin(angles)])
        sampled = float(noise(around).mean())
        assert float(noise.circularised()(radius)) == pytest.approx(sampled, rel=1e-4)


def test_circles_become_a_mechanism_that_is_certified_anew():
    values, decay, ell = private_tables()[0]
    noise = wh.NoiseFunction(values, f"{STEP} m", decay=decay)
    made = noise.circularised().noise(ell.scaled(1.001), spacing="12.5 m")
    assert made.certificate.holds
    assert made.mean_error.m == pytest.approx(noise.expected_loss(DISTANCE), rel=5e-3)
    with pytest.raises(NotPrivate):
        noise.circularised().noise(ell.scaled(0.2), spacing="12.5 m")


# -- Theorem 3 --------------------------------------------------------------------


def broken_pairs(noise, ell, vectors) -> int:
    f = noise(vectors)
    apart = np.hypot(*np.moveaxis(vectors[:, None] - vectors[None], -1, 0))
    return int((np.log(f[:, None]) - np.log(f) > ell(apart) * (1 + 1e-9) + 1e-12).sum())


def test_regulation_mends_single_vectors_and_borders_and_changes_nothing_else():
    for values, decay, ell in private_tables():
        odd = {(0.0, 0.0): 50.0, (130.0, -20.0): 1e-9, (50.0, 50.0): 7.0}
        noise = wh.NoiseFunction(values, f"{STEP} m", decay=decay, exceptions=odd)
        kept = ell.scaled(1 + 1e-9)
        assert noise.certify(kept).holds  # almost everywhere
        grid = np.array(list(itertools.product(np.arange(-250, 251, 50.0), repeat=2)))
        vectors = np.concatenate([grid, list(odd), [(130.0, -21.0), (1.0, 0.0)]])
        assert broken_pairs(noise, kept, vectors) > 0
        mended = noise.regulated()
        assert mended.certify(kept).holds
        assert broken_pairs(mended, kept, vectors) == 0
        inside = np.random.default_rng(3).uniform(-400, 400, (500, 2))
        np.testing.assert_array_equal(noise(inside), mended(inside))
        assert mended.expected_loss(SQUARE) == noise.expected_loss(SQUARE)


# -- regions: Theorems 4 and 6 ------------------------------------------------------


def test_levels_of_radii_by_trying_all_directions():
    ell = Distinguishability.table([0, 100, 300], [0.2, 1.0, 1.5])
    places = np.array([[0.0, 0.0], [120.0, 0.0], [0.0, 90.0], [200.0, 210.0]])
    finite, disk = FinitePlaces(places), Disk(Length(170.0))
    # Opposite ends of the disk count, and nothing beyond them.
    assert float(disk.radial_level(ell, 10.0, 180.0)) == float(ell(170.0))
    assert math.isinf(disk.radial_level(ell, 10.0, 180.001))
    rng = np.random.default_rng(2)
    for r, other in rng.uniform(0, 300, (60, 2)):
        angles = np.linspace(0, 2 * math.pi, 2001)
        apart = np.hypot(r * np.cos(angles) - other, r * np.sin(angles))
        plane = float(ell(apart).min())
        assert float(WholePlane().radial_level(ell, r, other)) == pytest.approx(plane, abs=1e-3)
        near = apart[apart <= 170.0]
        wanted = float(ell(near).min()) if near.size else math.inf
        assert float(disk.radial_level(ell, r, other)) == pytest.approx(wanted, abs=1e-3)
        lengths = [d for d in finite.lengths if abs(r - other) <= d <= r + other]
        level = min((float(ell(d)) for d in lengths), default=math.inf)
        assert float(finite.radial_level(ell, r, other)) == level


def test_a_disk_and_the_plane_part_where_theorem_6_says_so():
    capped = Distinguishability.capped("0.01/m", 3.0)
    laplace = wh.CircularNoise(LogLinear(np.array([0, np.inf]), np.zeros(1), np.zeros(1), 0.01))
    assert laplace.certified(capped, on="300 m").upper <= 1 + 1e-12
    assert laplace.certified(capped.scaled(0.99), on="300 m").refuted
    assert math.isinf(laplace.certified(capped).lower)  # no noise keeps it on the plane
    assert not Disk(Length(300.0)).same_as_plane(capped)
    linear = Distinguishability.linear("0.01/m")
    assert Disk(Length(300.0)).same_as_plane(linear)
    for radial in (laplace.radial, from_table([0, 100, 250], [4.0, 3.0, 1.0])):
        here, there = (radial_ratio_on(radial, linear, domain_of(x)) for x in ("300 m", None))
        assert here.upper == pytest.approx(there.upper, rel=1e-12)


def test_a_radial_on_places_by_trying_all_pairs_of_radii():
    rng = np.random.default_rng(4)
    ell = Distinguishability.linear("0.01/m")
    for _ in range(12):
        places = rng.uniform(0, 300, (4, 2))
        logs = np.cumsum(-rng.random(5))
        radial = from_table(np.append(0, np.cumsum(rng.uniform(40, 160, 4))), np.exp(logs))
        finite = FinitePlaces(places)
        found = radial_ratio_on(radial, ell, finite)
        r = np.unique(np.concatenate([radial.edges[:-1], np.linspace(0, 1200, 601)]))
        level = finite.radial_level(ell, r[:, None], r)
        g = radial.log_density(r)
        with np.errstate(divide="ignore", invalid="ignore"):
            sampled = np.where(r[:, None] == r, 0, np.abs(g[:, None] - g) / level).max()
        assert sampled <= found.upper * (1 + 1e-12)
        assert sampled >= 0.98 * found.lower
        a, b = found.worst
        assert abs(float(radial.log_density(a) - radial.log_density(b))) == pytest.approx(
            found.lower * min(float(ell(d)) for d in finite.lengths if abs(a - b) <= d + 1e-9),
            rel=1e-9,
        )


def test_tables_on_places_need_only_their_differences():
    """Two places 300 m apart: only shifts by 300 m count, so a rough table passes."""
    rng = np.random.default_rng(6)
    values = np.exp(rng.normal(size=(3, 3)))
    noise = wh.NoiseFunction(values, f"{STEP} m", decay=1.0)
    ell, places = Distinguishability.linear("0.02/m"), [[0.0, 0.0], [300.0, 0.0]]
    assert noise.ratio(ell).lower == math.inf
    found = noise.ratio(ell, on=places)
    i = np.arange(-12, 13)
    logs = noise.table.at(i[:, None], i[None])
    wanted = np.abs(logs[3:] - logs[:-3]).max() / 6.0
    assert found.lower == pytest.approx(wanted, rel=1e-12)
    u, v = found.witness
    assert math.dist(u, v) == pytest.approx(300)
    assert abs(float(np.log(noise(u) / noise(v)))) / 6.0 == pytest.approx(wanted, rel=1e-9)
    between = noise.ratio(ell, on=[[0.0, 0.0], [250.0, 0.0]])  # joins offsets 2 and 3
    halves = [np.abs(logs[k:] - logs[:-k]).max() for k in (2, 3)]
    assert between.lower == pytest.approx(max(halves) / 5.0, rel=1e-12)


def test_probabilities_on_a_lattice_of_vectors():
    """Theorem 1: differences of X must be lattice vectors, and then all pairs are listed."""
    i = np.arange(-4, 5)
    square = 0.3 * np.maximum(np.abs(i)[:, None], np.abs(i)[None])
    noise = wh.NoiseFunction(np.exp(-square), "100 m", decay=0.3, between="atoms")
    places = 100.0 * np.array([[0, 0], [1, 0], [2, 1], [0, 2]])
    ell = Distinguishability.linear("0.003/m")
    assert noise.certify(ell.scaled(1 + 1e-12), on=places).lower == pytest.approx(1)
    with pytest.raises(NotPrivate, match="does not keep"):
        noise.certify(ell.scaled(0.999), on=places)
    assert math.isinf(noise.ratio(ell, on=places * 1.01).lower)  # off the lattice: probability 0
    assert math.isinf(noise.ratio(ell, on="300 m").lower)
    assert noise.ratio(Distinguishability.unlimited(), on="300 m").upper == 0
    total = float(
        noise(100.0 * np.array(list(itertools.product(range(-150, 151), repeat=2)))).sum()
    )
    assert total == pytest.approx(1, rel=1e-12)
    with pytest.raises(InvalidInput, match="densities"):
        noise.circularised()


# -- linear tables and callables -----------------------------------------------------


def test_a_linear_table_is_decided_by_its_steepest_triangle():
    rng = np.random.default_rng(8)
    for _ in range(8):
        logs = rng.normal(size=(5, 7)) * 0.4
        noise = wh.NoiseFunction(np.exp(logs), "100 m", decay=2.0, between="linear")
        found = noise.ratio(Distinguishability.linear("0.01/m"))
        assert found.upper / found.lower < 1 + 1e-9
        u, v = found.witness
        apart = abs(float(np.log(noise(u) / noise(v)))) / (0.01 * math.dist(u, v))
        assert apart == pytest.approx(found.lower, rel=1e-6)
        points = rng.uniform(-700, 700, (4000, 2))
        near = points + rng.normal(size=points.shape) * rng.choice([1, 40, 200], (4000, 1))
        steep = np.abs(np.log(noise(points) / noise(near))) / np.hypot(*(points - near).T)
        assert steep.max() <= found.upper * 0.01 * (1 + 1e-9)


def test_a_linear_table_against_other_promises_is_enclosed():
    rng = np.random.default_rng(9)
    logs = rng.normal(size=(5, 5)) * 0.3
    noise = wh.NoiseFunction(np.exp(logs), "100 m", decay=0.5, between="linear")
    ell = Distinguishability.location("300 m", 1.0)
    found = noise.ratio(ell)
    points = rng.uniform(-700, 700, (40_000, 2))
    turn, length = rng.uniform(0, 2 * math.pi, 40_000), rng.uniform(0, 300, 40_000)
    near = points + length[:, None] * np.column_stack([np.cos(turn), np.sin(turn)])
    sampled = float(np.abs(np.log(noise(points) / noise(near))).max())
    assert 0.9 * found.lower <= sampled <= found.upper
    assert found.upper / found.lower < 1.6
    assert noise.certify(ell.scaled(found.upper * 1.0001)).holds
    with pytest.raises(NotPrivate, match="not proven"):
        noise.certify(ell.scaled((found.upper + found.lower) / 2))


def test_the_circles_of_a_linear_table_have_its_loss():
    rng = np.random.default_rng(10)
    noise = wh.NoiseFunction(
        np.exp(rng.normal(size=(3, 3)) * 0.4), "1 m", decay=4.0, between="linear"
    )
    assert noise.circularised().expected_loss(DISTANCE) == pytest.approx(
        noise.expected_loss(DISTANCE), rel=1e-11
    )
    assert noise.circularised().expected_loss(Loss(np.ones_like)) == pytest.approx(1, rel=1e-11)


def stretched(v):
    return np.exp(-0.01 * np.hypot(v[:, 0], 2 * v[:, 1]))


def test_a_callable_with_a_bound():
    noise = wh.NoiseFunction.of(stretched, bound="0.02/m", reach="9 km")
    ell = Distinguishability.linear("0.02/m")
    assert noise.certify(ell).upper == 1.0
    assert noise.ratio(ell).lower == pytest.approx(1, abs=1e-6)
    with pytest.raises(NotPrivate, match="does not keep"):
        noise.certify(ell.scaled(0.999))
    # Volumes of an ellipse: norm 2 pi / (eps^2 2), mean distance from an elliptic integral.
    assert float(noise([0.0, 0.0])) == pytest.approx(2 * 1e-4 / (2 * math.pi), rel=1e-6)
    mean = 2 / 0.01 * quad(lambda t: math.hypot(math.cos(t), math.sin(t) / 2), 0, 2 * math.pi)[0]
    assert noise.expected_loss(DISTANCE) == pytest.approx(mean / (2 * math.pi), rel=1e-5)
    assert noise.circularised().ratio(ell).holds
    assert noise.regulated() is noise
    with pytest.raises(InvalidInput, match="larger reach"):
        wh.NoiseFunction.of(stretched, bound="0.02/m", reach="1 km")
    capped = Distinguishability.capped("0.02/m", 4.0)
    assert noise.certify(capped, on="200 m").holds
    with pytest.raises(NotPrivate):
        noise.certify(capped)


def test_wrong_tables_are_refused():
    for values, options, message in [
        (np.ones((2, 3)), {}, "odd"),
        (np.zeros((3, 3)), {}, "> 0"),
        (np.ones((3, 3)), {"decay": 0.0}, "ring"),
        (np.ones((3, 3)), {"between": "splines"}, "between"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            wh.NoiseFunction(values, "1 m", **{"decay": 1.0, **options})
    with pytest.raises(InvalidInput, match="every direction"):
        wh.NoiseFunction(np.ones((3, 3)), "1 m", decay=1.0).circularised().ratio(
            Distinguishability.linear("1/m"), on=[[0, 0], [1, 1]]
        )
