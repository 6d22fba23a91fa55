from __future__ import annotations

import os
import pickle
import sqlite3
import stat
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whereish as wh
from stress.faults import race, workers
from whereish.errors import BudgetExceeded, InvalidInput, LedgerUnavailable
from whereish.publish.ledger.ledger import Charge

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
    """An empty ledger's address, on each kind of database."""
    if request.param == "sqlite":
        yield tmp_path / "ledger.db"
        return
    import psycopg

    url = request.getfixturevalue("server")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    yield url


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def test_charges_add_up_to_the_cap_and_no_further(address):
    ledger = wh.open_ledger(address, cap=EPS * 3)
    assert ledger.allows("ann", EPS, times=3)
    assert not ledger.allows("ann", EPS, times=4)
    for _ in range(3):
        ledger.charge([Charge("ann", EPS)])
    assert not ledger.allows("ann", "0.001/km")
    with pytest.raises(BudgetExceeded, match="1 of 1 subjects"):
        ledger.charge([Charge("ann", EPS)])
    assert ledger.allows("bob", EPS)
    statement = ledger.statement("ann")
    assert statement.spent_per_m == pytest.approx(3 * EPS.per_m)
    assert statement.left_per_m == pytest.approx(0, abs=1e-15)
    assert [entry.times for entry in statement.entries] == [1, 1, 1]


def test_all_or_nothing(address):
    ledger = wh.open_ledger(address, cap=EPS * 2)
    ledger.charge([Charge("bob", EPS, 2)])
    with pytest.raises(BudgetExceeded, match="1 of 3 subjects"):
        ledger.charge([Charge(who, EPS) for who in ("ann", "bob", "cid")])
    assert ledger.statement("ann").entries == ()
    assert ledger.statement("bob").spent_per_m == 2 * EPS.per_m


def test_duplicates_in_one_release_are_added(address):
    ledger = wh.open_ledger(address, cap=EPS * 2)
    with pytest.raises(BudgetExceeded):
        ledger.charge([Charge("ann", EPS)] * 3)
    ledger.charge([Charge("ann", EPS)] * 2)
    assert [entry.times for entry in ledger.statement("ann").entries] == [2]


def test_a_release_is_charged_once(address):
    ledger = wh.open_ledger(address, cap=EPS * 2)
    for _ in range(5):
        assert ledger.charge([Charge("ann", EPS)], release="r", pending=True) == "r"
    assert ledger.statement("ann").spent_per_m == EPS.per_m


def test_only_what_never_left_is_refunded(address):
    ledger = wh.open_ledger(address, cap=EPS * 2)
    kept = ledger.charge([Charge("ann", EPS)])
    with pytest.raises(InvalidInput, match=r"must be pending.*it is already released"):
        ledger.refund(kept)
    pending = ledger.charge([Charge("ann", EPS)], pending=True)
    assert not ledger.allows("ann", EPS)
    ledger.refund(pending)
    assert ledger.allows("ann", EPS)
    for again, now in ((pending, "is already refunded"), ("unheard-of", "was never charged")):
        with pytest.raises(InvalidInput, match=f"must be pending to become refunded: it {now}"):
            ledger.refund(again)
    with pytest.raises(InvalidInput):
        ledger.confirm(pending)
    left = ledger.charge([Charge("ann", EPS)], pending=True)
    ledger.confirm(left)
    with pytest.raises(InvalidInput):
        ledger.refund(left)
    assert ledger.state(left) == "released"
    assert ledger.state("unheard-of") is None
    # Lines are only ever added: the refund is a line of its own.
    assert sorted(entry.times for entry in ledger.statement("ann").entries) == [-1, 1, 1, 1]


def test_a_window_slides(address):
    clock = Clock()
    ledger = wh.open_ledger(address, cap=EPS * 2, window_s=3600, clock=clock)
    ledger.charge([Charge("ann", EPS)])
    clock.now += 1800
    pending = ledger.charge([Charge("ann", EPS)], pending=True)
    assert not ledger.allows("ann", EPS)
    clock.now += 1800
    assert ledger.allows("ann", EPS)
    assert not ledger.allows("ann", EPS, times=2)
    ledger.refund(pending)
    assert ledger.allows("ann", EPS, times=2)
    clock.now += 3600
    # The refund left the window together with its charge, so it gives nothing twice.
    assert not ledger.allows("ann", EPS, times=3)


def test_a_refund_is_dated_with_its_charge(address):
    """Dated now, it would outlive the charge in a window, and 2/km would fit below 1/km."""
    now = [1000.0]
    ledger = wh.open_ledger(address, cap="1/km", window_s=100, clock=lambda: now[0])
    release = ledger.charge([Charge("ann", wh.Epsilon.of("1/km"))], pending=True)
    now[0] += 60
    ledger.refund(release)
    assert ledger.allows("ann", "1/km")
    now[0] += 60  # the charge has left the window, and the refund with it
    assert ledger.allows("ann", "1/km")
    assert not ledger.allows("ann", "2/km")
    assert ledger.statement("ann").spent_per_m == 0
    ledger.charge([Charge("ann", wh.Epsilon.of("1/km"))])
    with pytest.raises(BudgetExceeded):
        ledger.charge([Charge("ann", wh.Epsilon.of("1/km"))])


@pytest.mark.parametrize("times", [1.5, 0.5, 2.0, True, "2", float("nan"), -1])
def test_times_are_whole_numbers(tmp_path, times):
    """A fraction that is truncated is a charge that is too small."""
    ledger = wh.open_ledger(tmp_path / "ledger.db", cap=EPS)
    with pytest.raises(InvalidInput, match="whole number"):
        Charge("ann", EPS, times)
    with pytest.raises(InvalidInput, match="whole number"):
        ledger.allows("ann", EPS, times=times)
    with pytest.raises(InvalidInput, match="whole number"):
        wh.PlanarLaplace(EPS).guarantee.repeated(times)
    assert Charge("ann", EPS, np.int64(3)).times == 3


def test_fractions_that_an_earlier_version_wrote_are_counted_whole(tmp_path):
    ledger = wh.open_ledger(tmp_path / "ledger.db", cap=EPS * 2)
    ledger.charge([Charge("ann", EPS)])
    with sqlite3.connect(tmp_path / "ledger.db") as connection:
        connection.execute("UPDATE whereish_entries SET times = 1.5")
    assert ledger.statement("ann").spent_per_m == pytest.approx(1.5 * EPS.per_m)
    assert not ledger.allows("ann", EPS)


def test_a_ledger_keeps_its_budget(address):
    with pytest.raises(InvalidInput, match="new"):
        wh.open_ledger(address)
    wh.open_ledger(address, cap=EPS)
    assert wh.open_ledger(address).budget.cap == EPS
    with pytest.raises(InvalidInput, match="cannot be"):
        wh.open_ledger(address, cap=EPS * 2)


def test_many_subjects(address):
    ledger = wh.open_ledger(address, cap=EPS * 2)
    charges = [Charge(f"s{i}", EPS) for i in range(1300)]
    ledger.charge(charges)
    ledger.charge(charges)
    with pytest.raises(BudgetExceeded, match="1300 of 1301"):
        ledger.charge([*charges, Charge("fresh", EPS)])


def test_races_give_exactly_the_cap(address):
    wh.open_ledger(address, cap=EPS * 200)
    with workers() as pool:
        assert [race(pool, str(address), f"subject {k}") for k in range(2)] == [200, 200]


@given(
    per_km=st.floats(0.01, 1e4, allow_nan=False),
    count=st.integers(1, 60),
    parts=st.integers(1, 7),
)
@settings(max_examples=25)
def test_n_charges_of_an_nth_fit_and_one_more_does_not(tmp_path_factory, per_km, count, parts):
    epsilon = wh.Epsilon.of(f"{per_km!r}/km")
    try:
        cap = epsilon * count
    except InvalidInput:
        return
    ledger = wh.open_ledger(tmp_path_factory.mktemp("l") / "l.db", cap=cap)
    left = count
    while left:
        times = min(parts, left)
        ledger.charge([Charge("ann", epsilon, times)])
        left -= times
    assert not ledger.allows("ann", epsilon)


def test_a_cap_is_exceeded_by_one_part_in_a_billion(tmp_path):
    ledger = wh.open_ledger(tmp_path / "ledger.db", cap=EPS)
    assert ledger.allows("ann", EPS * (1 + 1e-13))
    assert not ledger.allows("ann", EPS * (1 + 1e-9))
    ledger.charge([Charge("ann", EPS * 0.5)])
    assert not ledger.allows("ann", EPS * (0.5 + 1e-9))


def test_what_makes_no_sense(tmp_path):
    path = tmp_path / "ledger.db"
    with pytest.raises(InvalidInput, match="needs a cap"):
        wh.open_ledger(path)
    assert not path.exists()
    with pytest.raises(InvalidInput, match="window needs a cap"):
        wh.open_ledger(path, window_s=10)
    with pytest.raises(InvalidInput, match="> 0 seconds"):
        wh.open_ledger(path, cap=EPS, window_s=0)
    with pytest.raises(InvalidInput, match="folder"):
        wh.open_ledger(tmp_path / "nowhere" / "l.db", cap=EPS)
    ledger = wh.open_ledger(path, cap=EPS)
    with pytest.raises(InvalidInput, match="at least one subject"):
        ledger.charge([])
    with pytest.raises(InvalidInput, match="whole number >= 1"):
        ledger.charge([Charge("ann", EPS, 0)])


def test_a_damaged_ledger_releases_nothing(tmp_path):
    path = tmp_path / "ledger.db"
    path.write_bytes(b"SQLite format 3\0" + b"nonsense" * 200)
    with pytest.raises(LedgerUnavailable, match="cannot be used"):
        wh.open_ledger(path, cap=EPS)


def test_a_postgres_ledger_travels_to_other_processes(server):
    from whereish.publish.ledger.postgres import PostgresDatabase

    again = pickle.loads(pickle.dumps(PostgresDatabase(server)))
    with again.transaction(writing=False) as run:
        assert run.rows("SELECT 1 + ?", [1]) == [(2,)]


def test_no_server(tmp_path):
    with pytest.raises(LedgerUnavailable, match="OperationalError"):
        wh.open_ledger(f"postgresql:///x?host={tmp_path}", cap=EPS)


def test_the_servers_own_isolation_does_not_matter(server):
    """Under repeatable read a snapshot would be older than the lock that it waits for."""
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    sign = "&" if "?" in server else "?"
    stale = f"{server}{sign}options=-c%20default_transaction_isolation%3Drepeatable%5C%20read"
    wh.open_ledger(stale, cap=EPS)
    for turn in range(10):
        taken = []

        def take(subject=f"person {turn}", taken=taken):
            try:
                wh.open_ledger(stale).charge([Charge(subject, EPS)])
                taken.append(subject)
            except BudgetExceeded:
                pass

        threads = [threading.Thread(target=take) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(taken) == 1


def test_a_known_release_is_not_taken_for_another(address):
    ledger = wh.open_ledger(address, cap=EPS * 5)
    ledger.charge([Charge("ann", EPS)], release="daily")
    ledger.charge([Charge("ann", EPS)], release="daily")
    assert ledger.statement("ann").spent_per_m == pytest.approx(EPS.per_m)
    with pytest.raises(InvalidInput, match="new id"):
        ledger.charge([Charge("bob", EPS)], release="daily")
    ledger.charge([Charge("eve", EPS)], release="r", pending=True)
    ledger.refund("r")
    with pytest.raises(InvalidInput, match="new id"):
        ledger.charge([Charge("eve", EPS)], release="r")


def test_a_release_that_leaves_late_counts_when_it_leaves(address):
    clock = Clock()
    ledger = wh.open_ledger(address, cap=EPS, window_s=100, clock=clock)
    ledger.charge([Charge("ann", EPS)], release="early", pending=True)
    clock.now += 101
    ledger.charge([Charge("ann", EPS)], release="early", pending=True)  # resumed
    ledger.confirm("early")
    with pytest.raises(BudgetExceeded):
        ledger.charge([Charge("ann", EPS)])
    assert len(ledger.statement("ann").entries) == 1


def test_the_sqlite_ledger_is_closed_to_others(tmp_path):
    """The file and, while it is open, its journals."""
    path = tmp_path / "ledger.db"
    before = os.umask(0o022)
    try:
        ledger = wh.open_ledger(path, cap="1/m")
        with sqlite3.connect(path) as reader:  # holds the journals open
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM sqlite_master").fetchall()
            ledger.charge([Charge("ann", wh.Epsilon.of("1/km"))])
            modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()}
        reader.close()
        assert set(modes) == {"ledger.db", "ledger.db-wal", "ledger.db-shm"}
        assert set(modes.values()) == {0o600}
        (tmp_path / "link.db").symlink_to(tmp_path / "linked.db")
        wh.open_ledger(tmp_path / "link.db", cap="1/m")
        assert stat.S_IMODE((tmp_path / "linked.db").stat().st_mode) == 0o600
        path.chmod(0o664)
        assert wh.open_ledger(path).statement("ann").spent_per_m == 0.001
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
    finally:
        os.umask(before)
