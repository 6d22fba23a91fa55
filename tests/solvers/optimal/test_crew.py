"""Sections that threads share: every item once, nobody waits for ever, errors arrive."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from whereish.solvers.optimal.crew import (
    finish,
    first_item,
    in_crew,
    item_after,
    next_item,
    wait_for_all,
)
from whereish.threads import workers


class Section:
    """Calls out items again and again; `work(who, kind, item)` is done on each."""

    def __init__(self, work, calls, pause=lambda call: None):
        self.work, self.calls, self.pause = work, calls, pause

    def __call__(self, crew, who):
        if who > 0:
            while True:
                kind, item = next_item(crew, who)
                if kind < 0:
                    return None
                self.work(who, kind, item)
                finish(crew)
        done = True
        for call, count in enumerate(self.calls):
            self.pause(call)
            item = first_item(crew, call % 7, count)
            while item >= 0:
                self.work(who, call % 7, item)
                item = item_after(crew, item, count)
            done = wait_for_all(crew, count)
            if not done:
                break
        return done


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_every_item_is_done_once_and_before_the_next_call(threads):
    calls = [1 + call % 9 for call in range(400)]
    done, lock = [], threading.Lock()

    def work(who, kind, item):
        if (kind + item) % 5 == who:
            time.sleep(1e-4)
        with lock:
            done.append((kind, item))

    with workers(threads=threads) as team:
        for _ in range(3):  # of which the first may be over before another thread begins
            done.clear()
            assert in_crew(team, Section(work, calls))
            at = 0
            for call, count in enumerate(calls):
                assert sorted(done[at : at + count]) == [(call % 7, i) for i in range(count)]
                at += count
            assert at == len(done)


def test_threads_sleep_between_calls_and_the_leader_where_another_has_the_last_item():
    """Tenths of a second, of which hardly any is spent on looking."""
    where = []

    def work(who, kind, item):
        where.append(who)
        until = time.perf_counter() + 10.0
        while 1 not in where and time.perf_counter() < until:
            time.sleep(0.001)  # so that each thread has an item, however late it comes
        if who:
            time.sleep(0.1)

    with workers(threads=2) as team:
        begun, spent = time.perf_counter(), time.process_time()
        assert in_crew(team, Section(work, [2, 1, 2], pause=lambda call: time.sleep(0.1)))
        assert time.perf_counter() - begun > 0.3
        assert time.process_time() - spent < 0.2
    assert sorted(set(where)) == [0, 1]


@pytest.mark.parametrize("threads", [2, 3])
def test_an_error_of_another_thread_is_raised_and_the_threads_go_on(threads):
    def fail(who, kind, item):
        if who:
            raise KeyError(item)
        time.sleep(0.001)

    def fail_here(who, kind, item):
        if who == 0:
            raise KeyboardInterrupt
        time.sleep(0.001)

    with workers(threads=threads) as team:
        with pytest.raises(KeyError):
            in_crew(team, Section(fail, [8] * 200))
        with pytest.raises(KeyboardInterrupt):
            in_crew(team, Section(fail_here, [8] * 200))
        assert in_crew(team, Section(lambda *_: None, [8] * 200))
        assert team.map(abs, [-1, -2, -3]) == [1, 2, 3]


def test_a_thread_that_never_comes_is_not_waited_for():
    with workers(threads=2) as team:
        team.map(lambda _: time.sleep(0.001), range(2))
        free, done = threading.Event(), np.zeros(6, int)
        team._inboxes[0].put(free.wait)

        def work(who, kind, item):
            done[item] += 1

        assert in_crew(team, Section(work, [6, 6, 6]))
        free.set()
    np.testing.assert_array_equal(done, 3)
