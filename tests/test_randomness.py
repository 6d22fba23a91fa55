from __future__ import annotations

import inspect
import os
import pkgutil
import signal
import threading
from importlib import import_module

import numpy as np
import pytest
from scipy.stats import chi2

import whereish
from whereish.errors import InvalidInput
from whereish.randomness import SecureRandomness, SeededRandomness, secure


def test_bytes_are_uniform():
    counts = np.bincount(SecureRandomness().words(1_000_000).view(np.uint8), minlength=256)
    expected = counts.sum() / 256
    assert chi2.sf(((counts - expected) ** 2 / expected).sum(), 255) > 1e-6


def test_words_never_repeat():
    source = SecureRandomness()
    words = np.concatenate([source.words(1000) for _ in range(100)])
    assert len(np.unique(words)) == len(words)


def test_two_sources_differ():
    assert not np.array_equal(SecureRandomness().words(4), SecureRandomness().words(4))


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_has_its_own_key():
    source = SecureRandomness()
    source.words(1)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, source.words(8).tobytes() + secure().words(8).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    told = np.frombuffer(os.read(read, 128), np.uint64)
    mine = np.concatenate([source.words(8), secure().words(8)])
    assert not np.intersect1d(told, mine).size


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_forked_while_another_thread_draws_does_not_hang():
    source, stop = SecureRandomness(), threading.Event()

    def keep_drawing():
        while not stop.is_set():
            source.words(50_000)

    thread = threading.Thread(target=keep_drawing)
    thread.start()
    try:
        for _ in range(5):
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                os._exit(0 if len(source.words(4)) == 4 else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        thread.join()


def test_threads_get_different_words():
    source, seen = SecureRandomness(), []
    threads = [threading.Thread(target=lambda: seen.append(source.words(1000))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    words = np.concatenate(seen)
    assert len(np.unique(words)) == len(words)


def test_a_key_retires(monkeypatch):
    monkeypatch.setattr("whereish.randomness._KEY_LIFE", 80)
    source = SecureRandomness()
    source.words(10)
    first = source._keystream
    source.words(1)
    assert source._keystream is not first


def test_a_seed_reproduces_and_says_so():
    assert np.array_equal(SeededRandomness(7).words(9), SeededRandomness(7).words(9))
    assert not np.array_equal(SeededRandomness(7).words(9), SeededRandomness(8).words(9))
    assert SeededRandomness(7).reproducible
    assert not SecureRandomness().reproducible
    split = SeededRandomness(7)
    assert np.array_equal(
        np.concatenate([split.words(4), split.words(0), split.words(5)]),
        SeededRandomness(7).words(9),
    )


def test_there_is_no_default_seed():
    with pytest.raises(TypeError):
        SeededRandomness()
    with pytest.raises(InvalidInput, match="integer"):
        SeededRandomness("0")
    for module in pkgutil.walk_packages(whereish.__path__, "whereish."):
        if module.name.endswith("__main__"):
            continue
        for _, thing in inspect.getmembers(import_module(module.name), inspect.isroutine):
            try:
                parameters = inspect.signature(thing).parameters
            except (TypeError, ValueError):
                continue
            for name, parameter in parameters.items():
                if name in {"seed", "rng", "insecure_seed", "generator"}:
                    assert parameter.default in (None, inspect.Parameter.empty), thing


def test_other_generators_are_refused():
    with pytest.raises(InvalidInput, match="Generator"):
        secure(np.random.default_rng(0))
