"""Restarts, kills, several workers: one report and one charge for each key, none uncharged."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest

from stress.service_load import PLACE, WRONG, Load, kill_under_load, repeat_one_key
from whereish.errors import LedgerUnavailable
from whereish.interfaces.service import app
from whereish.interfaces.service.config import Config, LedgerConfig
from whereish.mechanisms.traces.budget import FixedUtility
from whereish.publish.ledger import open_ledger

import service_process


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


def test_a_key_over_8_connections_and_a_restart(tmp_path):
    with service_process.service(tmp_path, rest="", log_level="warning") as made:
        answers = repeat_one_key(made, 1000)
        assert len(answers) == 1
        assert "lon" in json.loads(answers.pop())
        entries = open_ledger(tmp_path / "state" / "ledger.db").statement("repeated").entries
        assert [entry.times for entry in entries] == [1]


def test_kills_under_load(tmp_path, address):
    with service_process.service(tmp_path, ledger=address, rest="", log_level="warning") as made:
        found = [kill_under_load(made, run, address, 0.4) for run in range(2)]
    for counts in found:
        assert counts["answered"] > 0
        assert {name: counts[name] for name in WRONG} == dict.fromkeys(WRONG, 0)


def test_a_shutdown_under_load_finishes_what_was_charged(tmp_path, address):
    """SIGTERM while eight clients ask: every charge was answered, and noted as such."""
    with service_process.service(tmp_path, ledger=address, rest="", log_level="warning") as made:
        load = Load(made, 0)
        load.start()
        load.wait_for_answers()
        time.sleep(0.6)
        made.stop()
        load.stop()
        assert made.process.returncode in (
            0,
            -signal.SIGTERM,
        )  # uvicorn raises it again, at the end
        assert not any((made.folder / "tmp").iterdir())
    ledger = open_ledger(address)
    entries = [e for k in range(load.clients) for e in ledger.statement(f"run-0-{k}").entries]
    assert len(load.answers) > 0
    assert {entry.state for entry in entries} == {"released"}
    assert len(entries) == len(load.answers)


def test_two_workers_share_budget_keys_and_sessions(tmp_path, address):
    assert FixedUtility("500 m", tests="every").most(12) <= service_process.TRACE_TOTAL
    with service_process.service(tmp_path, ledger=address, workers=2, cap="ln(4)/10 m") as made:
        # New connections go to either worker; a step is seen by the other.
        begun = made.post("/v1/traces", {"subject": "ann"}, key="session")
        steps = f"/v1/traces/{begun['session']}/steps"
        answers = [made.post(steps, {"step": i, **PLACE}) for i in range(12)]
        assert [made.post(steps, {"step": i, **PLACE}) for i in range(12)] == answers
        bob = {**PLACE, "subject": "bob"}
        same = [made.post("/v1/report", bob, key="k") for _ in range(16)]
        assert all(answer == same[0] for answer in same)
        statuses = [
            made.ask("POST", "/v1/report", {**PLACE, "subject": "eve"})[0] for _ in range(24)
        ]
        assert (statuses.count(200), statuses.count(409)) == (20, 4)
        # A worker counts a request after it was answered, and the other may be asked before.
        counted = b'whereish_requests_total{method="POST",route="/v1/report",status="200"} 36.0'
        end = time.monotonic() + 30
        while counted not in (text := made.ask("GET", "/metrics")[2]) and time.monotonic() < end:
            time.sleep(0.05)
        assert counted in text
        made.stop()
        spent = {e.state for e in open_ledger(address).statement("eve").entries}
        assert spent == {"released"}


NOWHERE = """
state = {state!r}
workers = {workers}
port = {port}
[ledger]
cap = "1/m"
[[mechanism]]
id = "gone"
file = "gone.npz"
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_service_that_cannot_start_says_so_and_ends(tmp_path, workers):
    """Workers are not started again for ever, and no stack is shown."""
    path = tmp_path / "service.toml"
    port = service_process.free_port()
    path.write_text(NOWHERE.format(state=str(tmp_path), workers=workers, port=port))
    command = [sys.executable, "-m", "whereish", "serve", "--config", path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "gone.npz" in done.stderr


def test_a_database_is_waited_for_and_then_given_up(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(app, "_PAUSES_S", (0, 0))
    monkeypatch.setattr(app.errors, "propagate", True)
    opened = []

    def closed(address, **budget):
        opened.append(address)
        raise LedgerUnavailable("the ledger's database cannot be used")

    monkeypatch.setattr(app, "open_ledger", closed)
    said = LedgerConfig(address="postgresql://nobody@127.0.0.1:1/none", cap="1/m")
    config = Config(state=str(tmp_path), ledger=said)
    with pytest.raises(LedgerUnavailable), caplog.at_level("WARNING", "whereish.service"):
        app._ledger_of(config)
    assert len(opened) == 3
    assert [record.getMessage() for record in caplog.records] == [
        "the ledger cannot be used; trying again in 0 s"
    ] * 2
