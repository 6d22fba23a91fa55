"""Restarts, kills, several workers: one report and one charge for each key, none uncharged."""

from __future__ import annotations

import json
import signal
import time

import pytest

from stress.service_load import PLACE, WRONG, Load, kill_under_load, repeat_one_key
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
        _, _, text = made.ask("GET", "/metrics")
        assert (
            b'whereish_requests_total{method="POST",route="/v1/report",status="200"} 36.0' in text
        )
        made.stop()
        spent = {e.state for e in open_ledger(address).statement("eve").entries}
        assert spent == {"released"}
