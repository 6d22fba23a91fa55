"""The reported cells follow the law of the real-number mechanism, exactly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from whereish.mechanisms.noise.axis_laplace import Laplace1D, ManhattanLaplace
from whereish.mechanisms.noise.globe_laplace import (
    GlobeLaplace,
    drawn,
    drawn_finer,
    undecided_shares,
)
from whereish.mechanisms.noise.globe_offsets import _angle, _latitude, cosine_sine
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.privacy import GreatCircle
from whereish.randomness import SeededRandomness
from whereish.sampling.lazy_uniform import DECIDED, REJECTED, UNDECIDED, LazyUniform, direction_ball
from whereish.sampling.words import direction, fraction, log_error, log_errors, nearest_node
from whereish.units import Epsilon

from laws import chi_square, lattice_p_value

SECRET = np.array([1234.2, -77.7])
RADII = {0.5: 40, 0.05: 150, 0.005: 150}


def planar_survival(eps):
    return lambda r: (1 + eps * r) * np.exp(-eps * r)


def wide_blocks(eps):
    """Blocks of lattice cells, about 1.2 / eps wide: few bins, so that a wrong scale shows."""
    return round(1.2 / eps) | 1


@pytest.mark.parametrize("eps", [1 / 2, 1 / 20, 1 / 200])
def test_fast_path(eps):
    secrets = np.broadcast_to(SECRET, (10_000_000, 2))
    cells = PlanarLaplace(Epsilon(eps)).cells(secrets, rng=SeededRandomness(21))
    block = wide_blocks(eps)
    law, wrong = planar_survival(eps), [planar_survival(eps * s) for s in (1.005, 0.995)]
    assert lattice_p_value(cells, SECRET, law, reach=RADII[eps]) > 1e-6
    assert lattice_p_value(cells, SECRET, law, block=block, reach=15) > 1e-6
    for survival in wrong:
        assert lattice_p_value(cells, SECRET, survival, block=block, reach=15) < 1e-12


@pytest.mark.parametrize("eps", [1 / 2, 1 / 20, 1 / 200])
def test_every_decision_in_balls(eps):
    mechanism = PlanarLaplace(Epsilon(eps))
    secrets = np.broadcast_to(SECRET, (100_000, 2))
    cells = mechanism.cells(secrets, rng=SeededRandomness(22), balls_only=True)
    law, block = planar_survival(eps), wide_blocks(eps)
    assert lattice_p_value(cells, SECRET, law, block=block, reach=10) > 1e-6
    wrong = planar_survival(1.05 * eps)
    assert lattice_p_value(cells, SECRET, wrong, block=block, reach=10) < 1e-12


GLOBE_SECRETS = np.array(
    [
        [0, 0],
        [2.3, 48.8],
        [180, -33.3],
        [-179.99999, 10],
        [77, 89.9999],
        [5, 90],
        [0, -90],
        [359, 1],
    ]
)


@pytest.mark.parametrize(
    ("mechanism", "secrets"),
    [
        (PlanarLaplace(Epsilon(0.005)), np.random.default_rng(1).uniform(-1e5, 1e5, (20_000, 2))),
        (PlanarLaplace(Epsilon(0.005), resolution="0.3 mm"), np.zeros((20_000, 2))),
        (PlanarLaplace(Epsilon(900.0)), np.zeros((5_000, 2)) + 0.5),
        (PlanarLaplace(Epsilon(1e-9)), np.zeros((5_000, 2))),
        (Laplace1D(Epsilon(0.02)), np.zeros((20_000, 1)) - 3.3),
        (ManhattanLaplace(Epsilon(0.02)), np.zeros((20_000, 2)) + 1e-3),
        (GlobeLaplace(Epsilon(0.005)), np.tile(GLOBE_SECRETS, (2000, 1))),
        (GlobeLaplace(Epsilon(0.005), decimals=9), np.tile(GLOBE_SECRETS, (500, 1))),
        (GlobeLaplace(Epsilon(1e-6)), np.tile(GLOBE_SECRETS, (500, 1))),
        (GlobeLaplace(Epsilon(1e-7), decimals=2), np.tile(GLOBE_SECRETS, (500, 1))),
        (GlobeLaplace(Epsilon(1e-9)), np.tile(GLOBE_SECRETS, (500, 1))),
    ],
    ids=str,
)
def test_doubles_and_balls_agree_on_every_cell(mechanism, secrets):
    """The kernel's error bound is honest: no decided cell is wrong.

    Both ways read the same bits unless one asks for more of them, which happens less
    than once in a million draws.
    """
    fast = mechanism.cells(secrets, rng=SeededRandomness(5))
    balls = mechanism.cells(secrets, rng=SeededRandomness(5), balls_only=True)
    assert np.array_equal(fast, balls)


@pytest.mark.parametrize(
    "mechanism",
    [
        PlanarLaplace(Epsilon(0.005)),
        PlanarLaplace(Epsilon(0.5), resolution="1 cm"),
        ManhattanLaplace(Epsilon(0.02)),
        Laplace1D(Epsilon(0.02)),
    ],
    ids=str,
)
def test_a_report_on_a_border_is_never_decided_wrongly(mechanism):
    """Secrets shifted so that the real report lies on a cell's border, to the last bit.

    With error bounds of zero, a third of these draws would be decided wrongly.
    """
    from flint import ctx

    count, per, axes = 1500, mechanism.words_per_draw, mechanism.space.dimension
    words = SeededRandomness(11).words(count * per).reshape(count, per)
    secrets = np.zeros((count, axes))
    for row, secret in zip(words, secrets, strict=True):
        with ctx.workprec(200):
            at = mechanism._exact([LazyUniform(int(w)) for w in row], np.zeros(axes))[0]
            secret[0] = -float((at - at.mid().floor()).mid()) * mechanism.resolution
    cells, state = np.empty((count, axes), np.int64), np.empty(count, np.uint8)
    mechanism._fast(words.ravel(), secrets, cells, state)
    for i in np.flatnonzero(state == DECIDED):
        uniforms = [LazyUniform(int(w)) for w in words[i]]
        assert mechanism._decide(uniforms, secrets[i], SeededRandomness(1)) == cells[i].tolist()
    assert (state == UNDECIDED).mean() > 0.9


@pytest.mark.parametrize(
    "mechanism",
    [PlanarLaplace(Epsilon(0.005)), ManhattanLaplace(Epsilon(0.02)), Laplace1D(Epsilon(0.02))],
    ids=str,
)
def test_small_uniforms_on_a_border_are_never_decided_wrongly(mechanism):
    """Where the logarithm is steep its error bound alone decides, and must be honest.

    A uniform near 2^-30 is known to 2^-24 of itself.  The secret puts the real report on a
    border, so the kernel sees a random offset within its error: it may decide nothing.  An
    error bound 16 times too small decides three of four of these, half of them wrongly.
    """
    from flint import ctx

    count, per, axes = 1500, mechanism.words_per_draw, mechanism.space.dimension
    words = SeededRandomness(12).words(count * per).reshape(count, per)
    signs = words[:, 0] & np.uint64(2**63 if axes == 1 or per == 2 else 0)
    scale = np.random.default_rng(2).integers(24, 38, count).astype(np.uint64)
    words[:, 0] = signs | (words[:, 0] >> scale)
    if per == 3:
        words[:, 2] >>= np.uint64(3)  # eastwards, in the first octant
    secrets = np.zeros((count, axes))
    for row, secret in zip(words, secrets, strict=True):
        with ctx.workprec(200):
            at = mechanism._exact([LazyUniform(int(w)) for w in row], np.zeros(axes))[0]
            secret[0] = -float((at - at.mid().floor()).mid()) * mechanism.resolution
    cells, state = np.empty((count, axes), np.int64), np.empty(count, np.uint8)
    mechanism._fast(words.ravel(), secrets, cells, state)
    assert (state == UNDECIDED).all()


def test_the_error_of_a_logarithm_is_bounded_for_small_uniforms():
    """Against both ends of the interval, in balls; a bound 5 times smaller is refuted."""
    from flint import arb, ctx

    words = SeededRandomness(13).words(4000) >> np.arange(40).astype(np.uint64).repeat(100)
    words = np.append(words, np.array([2**24, 2**24 + 2**11, 2**64 - 1, 2**63], np.uint64))
    worst = 0.0
    with ctx.workprec(200):
        for word in words:
            a, bits = fraction(word, 0), int(word) >> 11
            if a < 2.0**-40:
                assert log_error(a) == np.inf
                continue
            for end in (bits, bits + 1):
                off = abs((arb(end) / arb(2) ** 53).log() - arb(a).log())
                assert off < log_error(a)
                worst = max(worst, float(off) / log_error(a))
    assert worst > 0.2


def test_the_error_of_a_product_s_logarithm_is_bounded_for_small_uniforms():
    """Against the corners of both intervals, the product rounded, as the kernels take it."""
    from flint import arb, ctx

    shifts = np.random.default_rng(3).integers(0, 40, 4000).astype(np.uint64)
    words = (SeededRandomness(14).words(4000) >> shifts).reshape(-1, 2)
    words = np.vstack([words, np.array([[2**24, 2**64 - 1], [2**24] * 2, [1, 2**63]], np.uint64)])
    worst = 0.0
    with ctx.workprec(200):
        for pair in words:
            (a, b), (low, high) = (fraction(w, 0) for w in pair), (int(w) >> 11 for w in pair)
            if min(a, b) < 2.0**-40:
                assert log_errors(a, b) == np.inf
                continue
            log = arb(a * b).log()
            for u, v in ((low, high), (low, high + 1), (low + 1, high), (low + 1, high + 1)):
                off = abs((arb(u) * arb(v) / arb(2) ** 106).log() - log)
                assert off < log_errors(a, b)
                worst = max(worst, float(off) / log_errors(a, b))
    assert worst > 0.2


def test_angles_of_the_globe_are_within_their_bounds():
    """Sines, cosines and arctangents within the 16 units of 2^-53 that offsets count for each."""
    from flint import arb, ctx

    draw = np.random.default_rng(5)
    angles = np.concatenate([draw.uniform(0, 0.785, 2000), 2.0 ** draw.uniform(-60, 0, 2000), [0]])
    tangents = 2.0 ** draw.uniform(-60, 1, 2000) * draw.choice([-1, 1], 2000)
    places = np.concatenate([draw.uniform(-90, 90, 2000), [0, 45, -45, 90, -90, 1e-9, 89.999999]])
    unit = 2.0**-53
    with ctx.workprec(300):
        for t in angles:
            s, c = arb(t).sin_cos()
            for found, exact in zip(cosine_sine(t), (c, s), strict=True):
                assert not abs(arb(found) - exact) > 4 * unit * abs(exact)
        for z in tangents:
            exact = (arb(z) / arb(0.75)).atan()
            assert not abs(arb(_angle(z, 0.75)) - exact) > 16 * unit * abs(exact)
        for degrees in places:
            s, c = (arb(degrees) / 180).sin_cos_pi()
            for found, exact in zip(_latitude(degrees), (c, s), strict=True):
                assert not abs(arb(found) - exact) > 19 * unit * abs(exact)
    assert _angle(0.0, 0.0) == 0.0
    assert _angle(0.0, -1.0) == np.pi


@pytest.mark.parametrize("decimals", [2, 5, 9])
@pytest.mark.parametrize("eps", [1e-8, 1e-6, 0.005, 5.0])
def test_the_errors_of_a_globe_report_are_bounded(eps, decimals):
    """Its place in its cell against balls, everywhere; a bound 60 times smaller is refuted."""
    from flint import arb, ctx

    mechanism = GlobeLaplace(Epsilon(eps), decimals=decimals)
    at = np.random.default_rng(8)
    polar = at.choice([-1, 1], 300) * (90 - 10.0 ** at.uniform(-13, 0, 300))
    lats = np.concatenate([polar, np.tile(GLOBE_SECRETS[:, 1], 15), at.uniform(-90, 90, 200)])
    words, worst = SeededRandomness(14).words(4 * len(lats)).reshape(-1, 4), np.zeros(2)
    words[:, 3] >>= np.uint64(1)  # mostly accepted
    for lat, lon, row in zip(lats, at.uniform(-360, 360, len(lats)), words, strict=True):
        rejected, *places = drawn(row, lon, lat, mechanism._rate, 10.0**decimals)
        with ctx.workprec(300):
            uniforms = [LazyUniform(int(w)) for w in row]
            exact = mechanism._exact(uniforms, np.array([lon, lat]))
            if rejected:
                assert exact == REJECTED
                continue
            if not places[0]:
                continue
            turn = 360 * 10**decimals  # longitudes wrap
            for axis, (cell, place, error) in enumerate((places[1:4], places[4:7])):
                off = abs(exact[axis] - arb(int(cell)) - arb(place))
                if axis == 0:
                    off = min(off, abs(off - turn), abs(off + turn), key=float)
                assert off <= error
                worst[axis] = max(worst[axis], float(off) / error)
            if mechanism._rate >= 1:
                finer = drawn_finer(row, lon, lat, mechanism._rate, 10.0**decimals)
                for axis, (cell, place, error) in enumerate((finer[:3], finer[3:])):
                    off = abs(exact[axis] - arb(int(cell)) - arb(place))
                    assert not min(off, abs(off - turn), abs(off + turn), key=float) > error
    assert (worst > 1 / 60).all()


@pytest.mark.parametrize(
    ("lat", "decimals", "doubles", "finer"),
    [
        (0.0, 5, 1e-10, 1e-13),
        (48.85, 5, 1e-10, 1e-13),
        (48.85, 9, 1e-6, 1e-9),
        (90.0, 5, 1e-6, 1e-9),
        (90.0, 9, 1e-2, 1e-6),
    ],
)
def test_few_globe_draws_need_balls(lat, decimals, doubles, finer):
    """Fault 9: 1e-6 at Paris, 9e-3 with 9 decimals and 1.0 at the pole were "one in 10^8"."""
    mechanism = GlobeLaplace(Epsilon(0.005), decimals=decimals)
    # One draw next to its secret may be 10^-4 of a cell wide: the median of means does not mind.
    rng = SeededRandomness(23)
    shares = np.median(
        [undecided_shares(mechanism, lat, draws=30_000, rng=rng) for _ in range(7)], axis=0
    )
    assert shares[0] < doubles
    assert shares[1] < finer


def test_few_draws_are_undecided():
    mechanism = PlanarLaplace(Epsilon(0.005))
    secrets = np.random.default_rng(0).uniform(-1e4, 1e4, (2_000_000, 2))
    words = SeededRandomness(24).words(3 * len(secrets))
    cells, state = np.empty((len(secrets), 2), np.int64), np.empty(len(secrets), np.uint8)
    assert mechanism._fast(words, secrets, cells, state) <= 5


@pytest.mark.parametrize("words", [[0, 0, 0], [0, 2**64 - 1, 2**63], [1, 1, 2**61 - 1]])
def test_extreme_bits_are_left_to_the_balls_and_end(words):
    mechanism = PlanarLaplace(Epsilon(0.005))
    cells, state = np.empty((1, 2), np.int64), np.empty(1, np.uint8)
    assert mechanism._fast(np.array(words, np.uint64), np.zeros((1, 2)), cells, state) == 1
    uniforms = [LazyUniform(word) for word in words]
    cell = mechanism._decide(uniforms, np.zeros(2), SeededRandomness(25))
    assert np.hypot(*cell) > 40 / 0.005 * 0.5


def test_the_kernel_pieces_are_within_their_bounds():
    from flint import arb, ctx

    words = SeededRandomness(26).words(20_000)
    with ctx.workprec(200):
        for word in words:
            c, s = direction(word)
            exact_c, exact_s = direction_ball(LazyUniform(int(word)))
            assert abs(arb(c) - exact_c) < 2.0**-50
            assert abs(arb(s) - exact_s) < 2.0**-50
            off = abs(arb(fraction(word, 0)) - LazyUniform(int(word)).ball())
            assert not off > 2.0**-53


def test_what_is_left_of_a_coordinate_is_exact():
    """Against fractions, up to 2^46 steps away, for steps that are no powers of two."""
    draw = np.random.default_rng(6)
    for step in (1.0, 0.1, 3e-4, 712.3, 1e-9):
        far = step * 2.0 ** draw.uniform(-5, 46, 500) * draw.choice([-1, 1], 500)
        nodes = step * draw.integers(-(2**40), 2**40, 500).astype(float)
        for coordinate in np.concatenate([far, nodes, [0.0, step / 2, -step]]):
            n, rest = nearest_node(coordinate, step)
            exact = Fraction(coordinate) - int(n) * Fraction(step)
            assert abs(exact - Fraction(rest)) <= Fraction(step) / 2**52
            assert abs(rest) <= 0.52 * step


@pytest.mark.parametrize(
    "mechanism",
    [PlanarLaplace(Epsilon(0.005)), ManhattanLaplace(Epsilon(0.02)), Laplace1D(Epsilon(0.02))],
    ids=str,
)
def test_far_coordinates_cost_no_balls(mechanism):
    """The share of undecided draws tells nothing about where the secret is."""
    count, axes = 2_000_000, mechanism.space.dimension
    words = SeededRandomness(17).words(count * mechanism.words_per_draw)
    cells, state = np.empty((count, axes), np.int64), np.empty(count, np.uint8)
    secrets = np.random.default_rng(7).uniform(-1e13, 1e13, (count, axes))
    assert mechanism._fast(words, secrets, cells, state) <= 2


def test_lazy_uniforms_refine():
    uniform = LazyUniform(2**63 + 5)
    longer = uniform.extended(SeededRandomness(1))
    assert longer.bits == 128
    assert longer.prefix >> 64 == uniform.prefix
    assert uniform.split(1) == (1, LazyUniform(5, 63))
    assert uniform.ball().contains(longer.ball())


@pytest.mark.parametrize("balls_only", [False, True])
@pytest.mark.parametrize("eps", [1e-7, 3e-7, 1e-3])
def test_the_globe_has_its_radial_law_and_no_direction(eps, balls_only):
    n = 20_000 if balls_only else 1_000_000
    mechanism = GlobeLaplace(Epsilon(eps), decimals=9)
    secret = np.array([[179.9, 45.0]])
    cells = mechanism.cells(
        np.repeat(secret, n, 0), rng=SeededRandomness(27), balls_only=balls_only
    )
    reports = mechanism._places(cells)
    distance = GreatCircle()(reports, secret)
    east = np.radians(reports[:, 0] - secret[0, 0])
    lat, lat0 = np.radians(reports[:, 1]), np.radians(secret[0, 1])
    bearing = np.arctan2(
        np.sin(east) * np.cos(lat),
        np.cos(lat0) * np.sin(lat) - np.sin(lat0) * np.cos(lat) * np.cos(east),
    )
    rings = [mechanism.ideal_quantile(p).m for p in np.linspace(0, 1, 17)[1:-1]]
    ring, sector = np.searchsorted(rings, distance), np.floor((bearing / np.pi + 1) * 8) % 16
    counts = np.bincount((ring * 16 + sector).astype(int), minlength=257).astype(float)
    assert chi_square(counts, np.full(256, 1 / 256), least=5) > 1e-6


@pytest.mark.parametrize("mechanism", [Laplace1D(Epsilon(0.05)), ManhattanLaplace(Epsilon(0.05))])
def test_laplace_on_axes(mechanism):
    dimension = mechanism.space.dimension
    cells = mechanism.cells(np.full((1_000_000, dimension), 0.3), rng=SeededRandomness(28))
    edges = np.arange(-120, 122) - 0.5 - 0.3
    cdf = np.where(edges < 0, np.exp(0.05 * edges) / 2, 1 - np.exp(-0.05 * edges) / 2)
    wrong = np.where(edges < 0, np.exp(0.051 * edges) / 2, 1 - np.exp(-0.051 * edges) / 2)
    for axis in cells.T:
        index = np.where(np.abs(axis) <= 120, axis + 120, 241)
        counts = np.bincount(index, minlength=242).astype(float)
        assert chi_square(counts, np.diff(cdf)) > 1e-6
        assert chi_square(counts, np.diff(wrong)) < 1e-12
    if dimension == 2:
        assert abs(np.corrcoef(np.sign(cells.T))[0, 1]) < 0.006
        assert abs(np.corrcoef(np.abs(cells.T))[0, 1]) < 0.006
