"""Places are rounded at random to the centres around them with exactly their shares."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from whereish.randomness import SeededRandomness
from whereish.sampling.bilinear import _chosen, _exactly, corners, rounded
from whereish.sampling.lazy_uniform import LazyUniform
from whereish.space.raster import Raster


def exact_centre(place, origin, side, count, word, rng):
    q = (Fraction(place) - Fraction(origin)) / Fraction(side) - Fraction(1, 2)
    return _exactly(min(max(q, Fraction(0)), Fraction(count - 1)), LazyUniform(word), rng)


@pytest.mark.parametrize(
    ("origin", "side", "count"), [(0.0, 1.0, 7), (6.8e6, 0.1, 500), (-3.3, 1e-3, 2), (5.0, 2.0, 1)]
)
def test_words_at_a_share_are_decided_as_by_fractions(origin, side, count):
    """Fault 9: shares were rounded to doubles, and the guarantee said exact.

    The words are within a few units of each place's share, where doubles cannot tell.
    """
    draw = np.random.default_rng(3)
    centres = origin + side * (draw.integers(0, count, 300) + 0.5)
    places = np.concatenate(
        [origin + side * count * draw.uniform(-0.1, 1.1, 1000), centres, np.nextafter(centres, 9e9)]
    )
    words = []
    for place in places:
        q = (Fraction(place) - Fraction(origin)) / Fraction(side) - Fraction(1, 2)
        share = min(max(q, Fraction(0)), Fraction(count - 1)) % 1
        near = int(share * 2**64) + int(draw.integers(-(2**11), 2**11))
        words.append(near % 2**64)
    words = np.array(words, np.uint64)
    got = _chosen(places, origin, side, count, words, SeededRandomness(1))
    for place, word, centre in zip(places, words, got, strict=True):
        want = exact_centre(place, origin, side, count, int(word), SeededRandomness(1))
        # A word that needs more bits may draw them in another order.
        assert centre == want or _open(place, origin, side, count, int(word))
        assert 0 <= centre < count


def _open(place, origin, side, count, word):
    q = (Fraction(place) - Fraction(origin)) / Fraction(side) - Fraction(1, 2)
    share = min(max(q, Fraction(0)), Fraction(count - 1)) % 1
    return Fraction(word, 2**64) < share < Fraction(word + 1, 2**64)


def test_the_frequencies_are_the_shares():
    raster, n = Raster(3, 4, (10.0, 20.0)), 400_000
    place = np.array([17.0, 44.0])
    cells, shares = corners(raster, place)
    drawn = rounded(raster, np.tile(place, (n, 1)), SeededRandomness(4))
    for cell, share in zip(cells, shares, strict=True):
        spread = (share * (1 - share) / n) ** 0.5
        assert abs((drawn == cell).mean() - share) < 5 * spread
        assert abs((drawn == cell).mean() - 1.05 * share) > 5 * spread


def test_more_bits_settle_a_tie():
    third = Fraction(1, 3)
    word = int(third * 2**64)
    seen = {_exactly(third, LazyUniform(word), SeededRandomness(k)) for k in range(60)}
    assert seen == {0, 1}
    assert _exactly(Fraction(2), LazyUniform(0), SeededRandomness(0)) == 2
    assert _exactly(Fraction(1, 2), LazyUniform(2**63), SeededRandomness(0)) == 0
    assert _exactly(Fraction(1, 2), LazyUniform(2**63 - 1), SeededRandomness(0)) == 1
