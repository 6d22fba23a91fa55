"""What notebooks show: pictures that other programs read, and words that are only words."""

from __future__ import annotations

import base64
import io
import re

import numpy as np
import pytest

import whereish as wh
from whereish.notebook import heat_map, table

PIL = pytest.importorskip("PIL.Image")


def pixels(shown: str) -> np.ndarray:
    """How dark each pixel of the only picture is."""
    (data,) = re.findall(r"base64,([^\"]+)", shown)
    image = PIL.open(io.BytesIO(base64.b64decode(data, validate=True)))
    image.load()
    return 765 - np.asarray(image.convert("RGB"), int).sum(axis=2)


def test_the_larger_the_darker_and_the_first_row_is_on_top():
    shown = pixels(heat_map(np.array([[0.0, 1.0, 2.0], [5.0, 4.0, 3.0]]), ""))
    assert shown.shape == (2, 3)
    assert (np.argsort(shown, axis=None) == [0, 1, 2, 5, 4, 3]).all()
    assert len(np.unique(pixels(heat_map(np.ones((2, 2)), "")))) == 1


def test_large_arrays_are_averaged():
    values = np.zeros((1000, 513))
    values[500:] = 1.0
    shown = pixels(heat_map(values, ""))
    assert shown.shape == (256, 256)
    assert (shown[:128] == shown[0, 0]).all()
    assert (shown[128:] == shown[-1, -1]).all()
    assert shown[-1, -1] > shown[0, 0]
    assert len(heat_map(np.random.default_rng(1).random((2000, 2000)), "")) < 120_000


def test_words_are_escaped():
    words = '<script>alert(1)</script>" onerror="x\x1b'
    for shown in (heat_map(np.eye(2), words), table({words: words})):
        assert "<script" not in shown
        assert "\x1b" not in shown
        assert '" onerror' not in shown
    guarantee = wh.Guarantee(wh.Euclidean(), wh.Basis.THEOREM, words)
    assert "<script" not in guarantee._repr_html_()
    assert "theorem" in guarantee._repr_html_()


def test_a_channel_is_shown_row_by_row():
    channel = wh.tight_channel([[0, 0], [100, 0], [200, 0]], "0.01/m")
    shown = channel._repr_html_()
    assert (pixels(shown).argmax(axis=1) == [0, 1, 2]).all()
    assert "certified" in shown


def test_north_is_up_on_a_map():
    levels = wh.PrivacyMap([[1e-3, 1e-3], [1e-3, 2e-3]], cell="500 m")
    mechanism = wh.EikonalMechanism.build(levels, frame=0)
    query = wh.EikonalMechanism.build(levels, query=[[0, 0], [1, 1]])
    for thing in (levels, mechanism, query):
        shown = pixels(thing._repr_html_())
        assert np.unravel_index(shown.argmax(), shown.shape) == (0, 1)
    assert "certified" in mechanism._repr_html_()
