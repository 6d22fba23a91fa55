"""Group commit: many orders in one transaction, answered when it is durable."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import uuid
from concurrent.futures import Future
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whereish as wh
from whereish.errors import BudgetExceeded, LedgerUnavailable
from whereish.publish.ledger import open_ledger
from whereish.publish.ledger.group import (
    ChargeQueue,
    Order,
    ReleaseReused,
    immediate,
    kept_answers,
    settle,
)
from whereish.publish.ledger.ledger import Charge, Ledger

import postgres

EPS = wh.Epsilon.of("ln(4)/200 m")


@pytest.fixture(scope="module")
def server():
    if postgres.binaries() is None:
        pytest.skip("PostgreSQL is not installed: see scripts/system-packages.sh")
    with postgres.server() as address:
        yield address


@pytest.fixture(params=["sqlite", "postgres"])
def address(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    import psycopg

    url = request.getfixturevalue("server")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return url


@pytest.fixture
def queue(address):
    made = ChargeQueue(open_ledger(address, cap=EPS * 3), immediate)
    yield made
    made.close()


def order(who="ann", release=None, *, times=1, ask="ask", answer="answer") -> Order:
    return Order((Charge(who, EPS, times),), release or uuid.uuid4().hex, ask, answer)


def settled(queue: ChargeQueue, wanted: Order):
    future: Future = Future()
    queue.submit(wanted, future)
    try:
        return future.result(timeout=60)
    finally:
        del future  # its error's traceback holds this frame


def together(ledger: Ledger, orders: list[Order]):
    with ledger._database.transaction(writing=True) as run:
        return settle(ledger, run, orders)


def test_one_transaction_charges_as_many_would(address):
    """The fourth of one subject is refused, those around it are not."""
    ledger = open_ledger(address, cap=EPS * 3)
    orders = [order("ann") for _ in range(4)] + [order("bob", times=3), order("bob")]
    outcomes = together(ledger, orders)
    refused = [isinstance(outcome, BudgetExceeded) for outcome in outcomes]
    assert refused == [False, False, False, True, False, True]
    assert ledger.statement("ann").spent_per_m == pytest.approx(3 * EPS.per_m)
    assert [ledger.state(o.release) for o in orders] == [
        None if no else "pending" for no in refused
    ]


def test_a_refused_order_leaves_nothing_behind_and_may_come_again(address):
    now = [1e6]
    ledger = open_ledger(address, cap=EPS * 3, window_s=60, clock=lambda: now[0])
    assert not isinstance(together(ledger, [order(times=3)])[0], BudgetExceeded)
    again = order(release="r")
    assert isinstance(together(ledger, [again])[0], BudgetExceeded)
    now[0] += 61
    assert together(ledger, [again])[0].answer == "answer"


def test_all_or_nothing_over_several_subjects(address):
    ledger = open_ledger(address, cap=EPS * 3)
    both = Order((Charge("ann", EPS), Charge("bob", EPS, 4)), "r", "", "x")
    (outcome,) = together(ledger, [both])
    assert isinstance(outcome, BudgetExceeded)
    assert "1 of 2 subjects" in str(outcome)
    assert ledger.statement("ann").entries == ()


def test_an_order_that_was_paid_before_claims_its_name_only(address):
    ledger = open_ledger(address, cap=EPS * 3)
    paid = [Order((), "step 0", "ask", "one"), Order((), "step 0", "ask", "two")]
    assert [outcome.answer for outcome in together(ledger, paid)] == ["one", "one"]
    assert kept_answers(ledger, ["step 0", "step 1"]) == {"step 0": "one"}
    assert ledger.state("step 0") == "pending"


def test_a_repetition_gets_the_first_answer_and_is_not_charged(address):
    ledger = open_ledger(address, cap=EPS * 3)
    first = [order(release="r", answer="one"), order(release="r", answer="two")]
    outcomes = together(ledger, first)
    assert [o.answer for o in outcomes] == ["one", "one"]
    assert [o.repeated for o in outcomes] == [False, True]
    (later,) = together(open_ledger(address), [order(release="r", answer="three")])
    assert (later.answer, later.repeated) == ("one", True)
    assert ledger.statement("ann").spent_per_m == pytest.approx(EPS.per_m)


def test_a_name_with_another_question_is_refused(address):
    ledger = open_ledger(address, cap=EPS * 3)
    same, other = order(release="r"), order(release="r", ask="another")
    assert isinstance(together(ledger, [same, other])[1], ReleaseReused)
    assert isinstance(together(ledger, [other])[0], ReleaseReused)
    assert ledger.statement("ann").spent_per_m == pytest.approx(EPS.per_m)


def test_what_keeps_no_answer_cannot_be_repeated(address):
    ledger = open_ledger(address, cap=EPS * 3)
    assert together(ledger, [order(release="r", answer="")])[0].answer == ""
    assert isinstance(together(ledger, [order(release="r", answer="new")])[0], ReleaseReused)


def test_charges_are_pending_until_their_answer_left(queue, address):
    left, lost = settled(queue, order()), settled(queue, order())
    queue.answered(left.release)
    queue.close()
    ledger = open_ledger(address)
    assert [ledger.state(s.release) for s in (left, lost)] == ["released", "pending"]
    with pytest.raises(LedgerUnavailable, match="closing"):
        settled(queue, order())


def test_threads_that_repeat_one_name_get_one_answer(queue, address):
    answers: list[str] = []

    def ask(k: int) -> None:
        for i in range(25):
            answers.append(settled(queue, order(release="r", answer=f"{k}.{i}")).answer)

    threads = [threading.Thread(target=ask, args=(k,)) for k in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(answers) == 200
    assert len(set(answers)) == 1
    assert open_ledger(address).statement("ann").spent_per_m == pytest.approx(EPS.per_m)


def test_two_writers_share_a_budget_and_a_name(address):
    """As two processes would: each has its own connection and thread."""
    ledger = open_ledger(address, cap=EPS * 40)
    queues = [ChargeQueue(open_ledger(address), immediate) for _ in range(2)]
    got: list[object] = []

    def ask(queue: ChargeQueue, k: int) -> None:
        for i in range(15):
            try:
                got.append(settled(queue, order(answer="own")).answer)
                got.append(settled(queue, order("bob", f"shared {i}", answer=f"{i} {k}")).answer)
            except BudgetExceeded:
                got.append("refused")

    threads = [threading.Thread(target=ask, args=(q, k)) for k in range(2) for q in queues]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    [queue.close() for queue in queues]
    assert got.count("own") == 40
    assert ledger.statement("ann").spent_per_m == pytest.approx(40 * EPS.per_m)
    shared = {answer for answer in got if answer not in ("own", "refused")}
    assert len(shared) == len({answer.split()[0] for answer in shared})
    assert len(ledger.statement("bob").entries) == len(shared)


def test_answers_are_forgotten_but_not_that_they_were_charged(tmp_path):
    now = [1e6]
    ledger = open_ledger(tmp_path / "l.db", cap=EPS * 3, clock=lambda: now[0])
    queue = ChargeQueue(ledger, immediate, keep_s=3600)
    assert settled(queue, order(release="r")).answer == "answer"
    now[0] += 7200
    settled(queue, order("bob"))
    with pytest.raises(ReleaseReused, match="not kept"):
        settled(queue, order(release="r"))
    queue.close()


def test_a_lost_connection_fails_one_transaction_only(server):
    import psycopg

    with psycopg.connect(server, autocommit=True) as other:
        other.execute("DROP SCHEMA public CASCADE")
        other.execute("CREATE SCHEMA public")
        queue = ChargeQueue(open_ledger(server, cap=EPS * 3), immediate)
        settled(queue, order())
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'"
        )
        with pytest.raises(LedgerUnavailable):
            settled(queue, order())
        assert settled(queue, order()).answer == "answer"
        queue.close()


def test_a_ledger_without_its_tables_fails_and_recovers(tmp_path):
    path = tmp_path / "l.db"
    queue = ChargeQueue(open_ledger(path, cap=EPS * 3), immediate)
    with sqlite3.connect(path) as other:
        other.execute("ALTER TABLE whereish_releases RENAME TO hidden")
    with pytest.raises(LedgerUnavailable):
        settled(queue, order())
    with sqlite3.connect(path) as other:
        other.execute("ALTER TABLE hidden RENAME TO whereish_releases")
    assert settled(queue, order()).answer == "answer"
    queue.close()


def test_the_ledger_of_an_earlier_version_takes_orders(tmp_path):
    path = tmp_path / "ledger.sqlite"
    shutil.copy(Path(__file__).parents[2] / "recorded/files/ledger.sqlite", path)
    ledger = open_ledger(path)
    (outcome,) = together(
        ledger, [Order((Charge("somebody new", ledger.budget.cap * 0.5),), "r", "", "a")]
    )
    assert outcome.answer == "a"


def test_it_agrees_with_charging_one_by_one(tmp_path):
    """Random orders in random groups give the same verdicts and the same sums."""
    counter = iter(range(10_000))

    @settings(max_examples=12)
    @given(
        st.lists(
            st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 3)), min_size=1, max_size=5),
            max_size=4,
        )
    )
    def check(groups):
        k = next(counter)
        grouped = open_ledger(tmp_path / f"g{k}.db", cap=EPS * 5)
        single = open_ledger(tmp_path / f"s{k}.db", cap=EPS * 5)
        for group in groups:
            outcomes = together(grouped, [order(who, times=times) for who, times in group])
            for (who, times), outcome in zip(group, outcomes, strict=True):
                fits = single.allows(who, EPS, times=times)
                assert fits is not isinstance(outcome, BudgetExceeded)
                if fits:
                    single.charge([Charge(who, EPS, times)])
        for who in "abc":
            assert grouped.statement(who).spent_per_m == single.statement(who).spent_per_m

    check()


WRITER = """
import os, sys, threading
from concurrent.futures import Future
import whereish as wh
from whereish.publish.ledger.group import ChargeQueue, Order, immediate
from whereish.publish.ledger.ledger import Charge
queue = ChargeQueue(wh.open_ledger(sys.argv[1], cap="100/m"), immediate)
def ask(k):
    for i in range(100000):
        future = Future()
        queue.submit(Order((Charge("ann", wh.Epsilon(1e-3)),), f"{k} {i}", "", "x"), future)
        future.result()
        os.write(1, f"{k} {i}\\n".encode())
for k in range(4):
    threading.Thread(target=ask, args=(k,), daemon=True).start()
threading.Event().wait()
"""


def test_what_was_answered_survives_kill_9(address):
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, address], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    told = [process.stdout.readline().strip() for _ in range(150)]
    os.kill(process.pid, signal.SIGKILL)
    told += process.stdout.read().split("\n")[:-1]
    process.wait()
    process.stdout.close()
    ledger = open_ledger(address)
    lines = {entry.release for entry in ledger.statement("ann").entries}
    assert set(told) <= lines
    assert len(lines) <= len(told) + 4  # each of the four had at most one order under way
    assert {entry.state for entry in ledger.statement("ann").entries} == {"pending"}
