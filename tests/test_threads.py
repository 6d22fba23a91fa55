from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from scipy.linalg import lapack
from threadpoolctl import ThreadpoolController

from whereish.errors import InvalidInput
from whereish.mechanisms.channels.optimal import optimal_channel
from whereish.solvers.lapack import cholesky, cholesky_inverse, cholesky_solve
from whereish.solvers.optimal import interior_point
from whereish.threads import allowed_threads, in_ranges, in_threads, one_blas_thread, workers

THREE_THREADS = {
    key: value for key, value in os.environ.items() if not key.endswith("NUM_THREADS")
} | {"OPENBLAS_NUM_THREADS": "3"}


def blas_threads():
    found = ThreadpoolController().select(user_api="blas").info()
    return [library["num_threads"] for library in found]


def test_blas_has_one_thread_inside_and_what_it_had_outside():
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        before = blas_threads()
        with one_blas_thread():
            assert set(blas_threads()) == {1}
            with one_blas_thread():
                assert set(blas_threads()) == {1}
            assert set(blas_threads()) == {1}
        assert blas_threads() == before


def test_two_solvers_that_overlap_leave_the_threads_as_they_were():
    """The first to enter leaves first: what the second found must not stay."""
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        before = blas_threads()
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert set(blas_threads()) == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == before


def test_a_solver_without_scipy_loads_none_of_it_and_leaves_its_threads_as_they_were():
    """SciPy's own BLAS may come within: whoever loads it limits it, and it is restored with all."""
    code = """
import sys
import numpy as np
import whereish as wh
from threadpoolctl import ThreadpoolController
from whereish.threads import one_blas_thread
def threads():
    found = ThreadpoolController().select(user_api="blas").info()
    return {one["filepath"]: one["num_threads"] for one in found}
before = threads()
with one_blas_thread(scipy=False):
    assert set(threads().values()) == {1}
answers = np.arange(64).reshape(8, 8) % 3
wh.EikonalQuery.build(wh.PrivacyMap(np.full((8, 8), 0.002), cell="200 m"), answers)
assert "scipy.linalg" not in sys.modules
with one_blas_thread(scipy=False):
    with one_blas_thread():
        assert len(threads()) >= len(before)
        assert set(threads().values()) == {1}
    assert set(threads().values()) == {1}
after = threads()
assert set(after.values()) == set(before.values()), (before, after)
"""
    subprocess.run([sys.executable, "-c", code], check=True, env=THREE_THREADS)


def test_a_solver_that_fails_leaves_the_threads_as_they_were():
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        before = blas_threads()

        @one_blas_thread()
        def fail():
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        assert blas_threads() == before


def test_threads_keep_the_order_and_pass_errors_on():
    def slow_first(item):
        time.sleep(0.02 if item == 0 else 0.0)
        return item, threading.get_ident()

    found = in_threads(slow_first, range(6), threads=3)
    assert [item for item, _ in found] == list(range(6))
    assert len({thread for _, thread in found}) <= 3
    assert {thread for _, thread in in_threads(slow_first, range(3), threads=1)} == {
        threading.get_ident()
    }
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda item: 1 / item, [1, 0, 2], threads=2)


def test_the_variable_says_how_many(monkeypatch):
    monkeypatch.setenv("WHEREISH_THREADS", "3")
    assert allowed_threads() == 3
    for wrong in ("0", "many", "-1", "2.5", ""):
        monkeypatch.setenv("WHEREISH_THREADS", wrong)
        with pytest.raises(InvalidInput, match="WHEREISH_THREADS"):
            allowed_threads()
    for wrong in (0, -2, True, "2"):
        with pytest.raises(InvalidInput, match="threads"):
            in_threads(abs, [1], threads=wrong)


def spd(n):
    half = np.random.default_rng(n).normal(size=(n, n))
    return np.asfortranarray(half @ half.T + np.eye(n))


@pytest.mark.parametrize("n", [1, 2, 17, 60])
def test_factors_are_those_of_scipy(n):
    matrix, right = spd(n), np.arange(1.0, n + 1)
    factor, inverse = matrix.copy(order="F"), matrix.copy(order="F")
    assert cholesky(factor) == 0
    np.testing.assert_array_equal(factor, lapack.dpotrf(matrix, lower=0, clean=0)[0])
    np.testing.assert_array_equal(
        cholesky_solve(factor, right), lapack.dpotrs(factor, right, lower=0)[0]
    )
    cholesky(inverse)
    assert cholesky_inverse(inverse) == 0
    exact = np.linalg.inv(matrix)
    np.testing.assert_allclose(np.triu(inverse), np.triu(exact), rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(right, np.arange(1.0, n + 1))


def test_what_has_no_factor_is_told_and_wrong_forms_are_refused():
    assert cholesky(np.asfortranarray([[1.0, 2.0], [2.0, 1.0]])) == 2
    with pytest.raises(ValueError, match="Fortran"):
        cholesky(np.ones((3, 3))[:2])
    with pytest.raises(ValueError, match="Fortran"):
        cholesky(np.asfortranarray(np.ones((2, 2), np.float32)))
    with pytest.raises(ValueError, match="right-hand"):
        cholesky_solve(spd(3), np.ones(2))


def test_other_threads_go_on_while_lapack_works():
    """SciPy's wrapper holds the interpreter's lock throughout; this one must not.

    A loaded machine may not run the other thread in the tenth of a second of one factor; where
    the lock is held it runs in none of them.
    """
    matrix = spd(1500)
    assert any(ticks_inside(cholesky, matrix.copy(order="F")) >= 2 for _ in range(20))


def ticks_inside(work, matrix):
    """How often another thread runs in the middle of the work."""
    running, ticks = threading.Event(), []
    with one_blas_thread():

        def tick():
            running.set()
            while running.is_set():
                ticks.append(time.perf_counter())
                time.sleep(0.001)

        thread = threading.Thread(target=tick)
        thread.start()
        start = time.perf_counter()
        assert work(matrix) == 0
        end = time.perf_counter()
        running.clear()
        thread.join()
    margin = 0.1 * (end - start)
    return sum(start + margin < t < end - margin for t in ticks)


def test_the_optimum_does_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr(interior_point, "_WORTH_THREADS", 0)
    places = np.random.default_rng(4).uniform(0, 1000, (30, 2))
    prior = np.random.default_rng(5).dirichlet(np.ones(30))
    weights = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("WHEREISH_THREADS", threads)
        weights.append(optimal_channel(places, prior, "0.005/m", gap=1e-4).weights)
    np.testing.assert_array_equal(weights[0], weights[1])
    np.testing.assert_array_equal(weights[0], weights[2])


@pytest.mark.parametrize("threads", [1, 2, 3, 9])
def test_workers_keep_the_order_and_are_no_more_than_asked(threads):
    with workers(threads=threads) as team:
        where = team.map(lambda item: (item, threading.get_ident()), range(7))
        assert [item for item, _ in where] == list(range(7))
        for _ in range(200):
            assert team.map(lambda item: item**2, range(7)) == [item**2 for item in range(7)]
        assert team.map(str, []) == []
    assert len({thread for _, thread in where}) <= threads


def test_a_thread_takes_of_another_that_is_held_up_and_the_caller_of_one_that_has_not_begun():
    """Items 4 to 7 are the other thread's own; the caller does all but the one that blocks it."""
    free, caller = threading.Event(), threading.get_ident()

    def work(item):
        if threading.get_ident() != caller:
            free.wait()
        elif len(done) == 6:
            free.set()
        time.sleep(0.005)
        done.append(item)
        return threading.get_ident()

    done = []
    with workers(threads=2) as team:
        where = team.map(work, range(8))
    assert where.count(caller) >= 7
    free.set()
    with workers(threads=2) as team:
        team.map(lambda item: time.sleep(0.001), range(2))
        begun = threading.Event()
        # The other thread is busy with what it does not come back from: all is done without it.
        team._inboxes[0].put(lambda: (begun.wait(), None)[1])
        assert team.map(lambda item: threading.get_ident(), range(6)) == [caller] * 6
        begun.set()


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_the_error_of_the_first_item_is_raised_and_the_threads_go_on(threads):
    def fail(item):
        raise KeyError(item)

    with workers(threads=threads) as team:
        with pytest.raises(KeyError):
            team.map(fail, range(10))
        assert team.map(abs, [-1, -2, -3]) == [1, 2, 3]
        with pytest.raises(KeyboardInterrupt):
            team.map(interrupt_in_the_middle, range(10))
        assert team.map(abs, [-1, -2, -3]) == [1, 2, 3]


def interrupt_in_the_middle(item):
    if item == 5:
        raise KeyboardInterrupt


def test_what_the_caller_has_set_holds_in_every_thread():
    def divide(item):
        time.sleep(0.005)
        return np.ones(3) / np.zeros(3), threading.get_ident()

    with workers(threads=2) as team, np.errstate(divide="ignore"):
        team.map(divide, range(8))  # a warning would be an error here
    with workers(threads=2) as team, np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        team.map(lambda item: None if item < 4 else divide(item), range(8))


def identities(team):
    """Of the threads that a team has; a pause lets each of them come to its turn."""
    return set(team.map(lambda _: (time.sleep(0.005), threading.get_ident())[1], range(12)))


def test_workers_within_workers_are_the_same_threads():
    before = threading.active_count()
    with workers(threads=3) as outer:
        assert threading.active_count() == before  # none begins before there is work
        known = identities(outer)
        for count in (1, 2, 3):
            with workers(threads=count) as team:
                assert team.count == count
                assert identities(team) <= known
            assert threading.active_count() <= before + 2
            assert in_threads(abs, [-1, -2], threads=count) == [1, 2]
        assert identities(outer) <= known  # those who left did not close them
        with workers(threads=4) as team:
            assert team.count == 4
        with pytest.raises(ZeroDivisionError):
            in_threads(lambda item: 1 / item, [1, 0, 2], threads=2)
    assert threading.active_count() == before


def test_workers_of_another_thread_are_its_own():
    with workers(threads=2) as team:

        def within(_):
            with workers(threads=2) as mine:
                return mine is team, mine.map(abs, [-3, -4])

        assert [found for _, found in team.map(within, range(6))] == [[3, 4]] * 6
        seen = []
        thread = threading.Thread(target=lambda: seen.append(within(0)[0]))
        thread.start()
        thread.join()
        assert seen == [False]
        assert within(0)[0]


@pytest.mark.parametrize("count", [0, 1, 5, 100])
@pytest.mark.parametrize("work", [0.0, 1e9])
def test_ranges_make_up_all(count, work, monkeypatch):
    for threads in ("1", "3"):
        monkeypatch.setenv("WHEREISH_THREADS", threads)
        done = np.zeros(count, int)

        def add(part, done=done):
            done[slice(*part)] += 1

        in_ranges(add, count, work=work)
        assert (done == 1).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_what_is_left_for_later_is_done_once_by_whoever_comes_first(threads):
    done = []

    def work(pause):
        time.sleep(pause)
        done.append(threading.get_ident())
        with workers(threads=3) as mine:
            return mine.count, threading.get_ident()

    with workers(threads=threads) as team:
        asked_at_once = team.later(lambda: work(0.0))()
        later = team.later(lambda: work(0.01))
        time.sleep(0.05)
        count, where = later()
        assert len(done) == 2
        assert asked_at_once[0] in (1, 3)
        # Beside the caller's work it has no threads of its own.
        assert count == (3 if threads == 1 else 1)
        assert (where == threading.get_ident()) == (threads == 1)
        team.later(lambda: 1 / 0)  # nobody asks
        later = team.later(lambda: 1 / 0)
        time.sleep(0.01)
        with pytest.raises(ZeroDivisionError):
            later()
        assert team.map(abs, [-1, -2, -3]) == [1, 2, 3]
        with np.errstate(divide="ignore"):
            later = team.later(lambda: np.ones(3) / np.zeros(3))
            time.sleep(0.01)
            assert np.isinf(later()).all()
        with workers(threads=3) as mine:
            assert mine.count == 3
