from __future__ import annotations

import inspect
import os
import pkgutil
import shutil
import signal
import subprocess
import sys
import threading
from importlib import import_module

import numpy as np
import pytest
from scipy.stats import chi2

import whereish
from whereish import randomness
from whereish.errors import InvalidInput
from whereish.randomness import SecureRandomness, SeededRandomness, draws_of_bytes, secure


def test_bytes_are_uniform():
    counts = np.bincount(SecureRandomness().words(1_000_000).view(np.uint8), minlength=256)
    expected = counts.sum() / 256
    assert chi2.sf(((counts - expected) ** 2 / expected).sum(), 255) > 1e-6


@pytest.mark.parametrize("count", range(1, randomness._FEW + 2))
def test_words_of_small_calls_are_uniform_and_never_repeat(count):
    source = SecureRandomness()
    words = np.concatenate([source.words(count) for _ in range(20_000)])
    assert len(np.unique(words)) == len(words) == 20_000 * count
    bits = np.unpackbits(words.view(np.uint8)).reshape(len(words), 64).sum(axis=0)
    assert (np.abs(bits - len(words) / 2) < 3.5 * np.sqrt(len(words))).all()  # 7 sigma


@pytest.mark.parametrize("count", [1, 3, randomness._FEW, 9])
def test_draws_of_bytes_are_those_of_words(count):
    ours, theirs = SeededRandomness(5), SeededRandomness(5)
    draw = draws_of_bytes(ours, count)
    for _ in range(3):
        assert draw() == theirs.words(count).tobytes()
    secure_draw = draws_of_bytes(SecureRandomness(), count)
    drawn = np.frombuffer(b"".join(secure_draw() for _ in range(5000)), np.uint64)
    assert len(np.unique(drawn)) == len(drawn) == 5000 * count
    bits = np.unpackbits(drawn.view(np.uint8)).reshape(len(drawn), 64).sum(axis=0)
    assert (np.abs(bits - len(drawn) / 2) < 3.5 * np.sqrt(len(drawn))).all()  # 7 sigma


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_renews_the_chain_of_draws():
    """Even if neither the system nor its clocks told parent and child apart."""
    draw = draws_of_bytes(SecureRandomness(), randomness._FEW)
    draw()
    (own,) = (
        c.cell_contents for c in draw.__closure__ if isinstance(c.cell_contents, SecureRandomness)
    )
    before = own._chain
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, own._chain)
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 64) != before == own._chain


def test_two_copies_of_draws_part_at_once(monkeypatch):
    for name in ("time_ns", "perf_counter_ns"):
        monkeypatch.setattr(f"whereish.randomness.time.{name}", lambda: 7)
    chain = bytes(32)
    assert randomness._step(chain) != randomness._step(chain)
    monkeypatch.undo()
    monkeypatch.setattr("whereish.randomness.os.urandom", bytes)
    assert randomness._step(chain) != randomness._step(chain)


def test_words_may_be_written_to():
    for count in (1, randomness._FEW, randomness._FEW + 1):
        words = SecureRandomness().words(count)
        words >>= np.uint64(1)
        assert (words < 2**63).all()


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


def test_every_block_has_its_own_key(monkeypatch):
    keys = []

    class Watched(randomness._Keystream):
        def __init__(self, key):
            keys.append(key)
            super().__init__(key)

    monkeypatch.setattr(randomness, "_Keystream", Watched)
    source = SecureRandomness()
    assert len(source.words(2 * randomness._BLOCK + 1)) == 2 * randomness._BLOCK + 1
    source.words(randomness._FEW + 1)
    assert len(keys) == len(set(keys)) == 4
    source.words(randomness._FEW)
    source.words(0)
    assert len(keys) == 4


@pytest.mark.parametrize("count", [1, randomness._FEW, 8, 2 * randomness._BLOCK])
def test_copies_of_one_state_part_at_once(count):
    """A machine restored twice from one snapshot: every byte of the state is the same."""
    source = SecureRandomness()
    source.words(3)
    twin = SecureRandomness()
    twin.__dict__.update(source.__dict__)
    assert twin._chain == source._chain
    ours, theirs = source.words(count), twin.words(count)
    assert not np.intersect1d(ours, theirs).size
    assert not np.intersect1d(source.words(count), twin.words(count)).size


def test_copies_part_even_where_the_kernel_was_copied_too(monkeypatch):
    """Restored without a reseed, the operating system gives both copies the same bytes."""
    monkeypatch.setattr("whereish.randomness.os.urandom", bytes)
    source, twin = SecureRandomness(), SecureRandomness()
    assert twin._chain == source._chain
    for count in (8, 3):
        twin.__dict__.update(source.__dict__)
        assert not np.intersect1d(source.words(count), twin.words(count)).size


def test_two_copies_with_the_same_clock_part_by_fresh_bytes(monkeypatch):
    monkeypatch.setattr("whereish.randomness.time.time_ns", lambda: 7)
    monkeypatch.setattr("whereish.randomness.time.perf_counter_ns", lambda: 7)
    source, twin = SecureRandomness(), SecureRandomness()
    for count in (8, 3):
        twin.__dict__.update(source.__dict__)
        assert not np.intersect1d(source.words(count), twin.words(count)).size


# What workers of a container do: each draws noise after its parent drew some.
_WORKERS = """
import ctypes, os, sys
import numpy as np
from whereish.mechanisms.noise.planar_laplace import PlanarLaplace
from whereish.randomness import SecureRandomness

source, NEWPID, WORKERS = SecureRandomness(), 0x20000000, 64
mechanism, place = PlanarLaplace("1/km", resolution="1 mm"), np.zeros((1, 2))

def draw():
    noise = mechanism.report(place).coordinates.tobytes()
    return os.getpid().to_bytes(8, "little") + source.words(4).tobytes() + noise

def namespace(write):
    # A child that forks one with process id 1 (as ours) in a namespace of its own.
    if ctypes.CDLL(None, use_errno=True).unshare(NEWPID):
        raise OSError(ctypes.get_errno(), "unshare")
    if os.fork() == 0:
        os.write(write, draw())
        os._exit(0)
    os.wait()

def reuse(write):
    # A child that draws, forks and ends; its own child forks one with the ended one's id.
    mine, (ended, until_it_ends) = os.getpid(), os.pipe()
    draw()
    if os.fork() == 0:
        os.close(until_it_ends)
        os.read(ended, 1)
        while True:  # until the first process has taken note of the end
            try:
                os.kill(mine, 0)
            except ProcessLookupError:
                break
        with open("/proc/sys/kernel/ns_last_pid", "w") as file:
            file.write(str(mine - 1))
        if os.fork() == 0 and os.getpid() == mine:
            os.write(write, draw())
        os._exit(0)
    os.write(write, draw())

start = {"namespace": namespace, "reuse": reuse}[sys.argv[1]]
sys.stdout.buffer.write(draw())
for _ in range(WORKERS):
    read, write = os.pipe()
    worker = os.fork()
    if worker == 0:
        start(write)
        os._exit(0)
    os.close(write)
    os.waitpid(worker, 0)
    with os.fdopen(read, "rb") as told:
        sys.stdout.buffer.write(told.read())
"""


def _draws_in_a_namespace(how):
    """Records of (process id, words, noise) of process 1 and of its workers."""
    enter = ["unshare", "--pid", "--fork", "--mount-proc"]
    if os.geteuid():
        enter += ["--user", "--map-root-user"]

    def run(*command):
        return subprocess.run([*enter, *command], check=False, capture_output=True)

    if shutil.which("unshare") is None or run("true").returncode:
        pytest.skip("no process namespace can be made here: unshare is missing or not permitted")
    done = run(sys.executable, "-c", _WORKERS, how)
    if b"ns_last_pid" in done.stderr:
        pytest.skip("no process id can be reused on purpose here: ns_last_pid is not writable")
    assert done.returncode == 0, done.stderr.decode()
    layout = np.dtype([("process", "<i8"), ("words", "<u8", 4), ("noise", "<f8", 2)])
    return np.frombuffer(done.stdout, layout)


@pytest.mark.parametrize(("how", "records"), [("namespace", 1 + 64), ("reuse", 1 + 2 * 64)])
def test_workers_with_the_same_process_id_share_no_noise(how, records):
    """Fault 4 of the review: every one of 64 workers added the very same noise."""
    draws = _draws_in_a_namespace(how)
    assert len(draws) == records
    if how == "namespace":
        assert (draws["process"] == 1).all()
    else:
        assert (draws["process"][1::2] == draws["process"][2::2]).all()
    assert len(np.unique(draws["words"])) == 4 * records
    assert len(np.unique(draws["noise"], axis=0)) == records


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
