"""The clients against the real service, and against connections that break."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import uuid

import pytest
from click.testing import CliRunner

import whereish as wh
from whereish.errors import BudgetExceeded, InvalidInput, ServiceError
from whereish.interfaces.cli import cli

from service_process import TRACE_TOTAL

HOME = (2.3331698, 48.8541234)


def who() -> str:
    return f"client-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def client(running):
    with wh.Client(running.url, token=running.token) as made:
        yield made


def test_reports_budgets_and_mechanisms(client):
    subject = who()
    report = client.report(*HOME, subject=subject)
    assert report.charged
    assert report.epsilon == wh.Epsilon.of("ln(4)/200 m")
    assert report.accuracy_m == pytest.approx(692, abs=1)
    assert len(client.reports([HOME] * 3, mechanism="city", subject=subject)) == 3
    assert client.budget(subject).spent_per_m == pytest.approx(1.3 * report.epsilon.per_m)
    assert [offer.id for offer in client.mechanisms()] == ["street", "city"]
    assert str(HOME[0]) not in repr(report)


def test_a_trace(client):
    trace = client.trace(subject=who())
    steps = [trace.step(*HOME, time_s=60.0 * i) for i in range(4)]
    assert [step.step for step in steps] == [0, 1, 2, 3]
    assert trace.close() == steps[-1].spent_per_m
    with pytest.raises(ServiceError) as ended:
        trace.step(*HOME, time_s=300.0)
    assert ended.value.kind == "session-ended"


def test_what_is_near_and_a_certificate(client):
    found = [client.nearby(*HOME, "500 m", subject=who()) for _ in range(8)]
    whole = [one for one in found if one.complete]
    assert whole
    assert len({json.dumps(one.results) for one in whole}) == 1
    one = whole[0]
    assert 0 < len(one) < one.fetched
    assert {"name", "lon", "lat", "distance_m"} == set(one.results[0])
    assert max(row["distance_m"] for row in one.results) <= 500
    assert one.retrieval_radius_m == pytest.approx(500 + one.accuracy_m)
    assert not {str(HOME[0]), "distance_m", str(one.lon)} & set(repr(one).split())
    city = client.nearby(*HOME, mechanism="city", subject=who())
    assert city.accuracy_m > 6000
    stated = wh.Guarantee.from_json(client.certificate("city")["guarantee"])
    assert stated == wh.GlobeLaplace("ln(4)/2 km").guarantee
    with pytest.raises(InvalidInput, match="radius"):
        client.nearby(*HOME, "0 m")
    with pytest.raises(ServiceError, match="nothing of this name"):
        client.certificate("other")


def test_the_same_to_be_awaited(running):
    async def ask():
        async with wh.AsyncClient(running.url, token=running.token) as client:
            subject = who()
            reports = await asyncio.gather(
                *(client.report(*HOME, subject=subject) for _ in range(9))
            )
            trace = await client.trace(subject=subject)
            step = await trace.step(*HOME)
            spent = await trace.close()
            budget = await client.budget(subject)
            near = await client.nearby(*HOME, "200 m", subject=who())
            assert near.confidence == 0.95
            assert (await client.certificate("street"))["id"] == "street"
            return reports, step, spent, budget, await client.mechanisms()

    reports, step, spent, budget, offers = asyncio.run(ask())
    assert len({(r.lon, r.lat) for r in reports}) > 1
    assert spent == step.spent_per_m
    assert budget.spent_per_m == pytest.approx(9 * reports[0].epsilon.per_m + TRACE_TOTAL)
    assert len(offers) == 2


def test_problems_become_errors_that_quote_nothing(running, client):
    with pytest.raises(InvalidInput) as refused:
        client.report(2.0, 91.2345678)
    assert "91.2345678" not in str(refused.value)
    assert "lat" in str(refused.value)
    with pytest.raises(ServiceError, match="no such mechanism"):
        client.report(*HOME, mechanism="other")
    with (
        wh.Client(running.url, token="wh_00000000_x") as stranger,
        pytest.raises(ServiceError, match="bearer token"),
    ):
        stranger.report(*HOME)
    with pytest.raises(BudgetExceeded):
        client.trace(subject=_poor(running))


def _poor(running) -> str:
    """A subject whose budget is nearly spent, written into the ledger itself."""
    from whereish.publish.ledger import open_ledger
    from whereish.publish.ledger.ledger import Charge

    subject = who()
    ledger = open_ledger(running.folder / "state" / "ledger.db")
    ledger.charge([Charge(subject, wh.Epsilon(899.99))])
    return subject


def test_places_are_not_sent_in_the_clear():
    for url in (
        "http://example.org",
        "ftp://127.0.0.1",
        "https://",
        "https://a?b=c",
        "https://u@h",
    ):
        with pytest.raises(InvalidInput):
            wh.Client(url)
    with wh.Client("http://example.org", insecure=True) as client:
        assert repr(client) == "Client('http://example.org')"


class Proxy(threading.Thread):
    """Passes connections on; those of the given numbers are cut before the answer comes back."""

    def __init__(self, port: int, cut: set[int]) -> None:
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.target, self.cut = self.listener.getsockname()[1], port, cut
        self.seen = 0
        self.keys: list[str] = []

    def run(self) -> None:
        while True:
            try:
                line, _ = self.listener.accept()
            except OSError:
                return
            with line, socket.create_connection(("127.0.0.1", self.target)) as onward:
                data = line.recv(65_536)
                head, _, body = data.partition(b"\r\n\r\n")
                if not body and head.startswith(b"POST"):
                    data += line.recv(65_536)
                self.keys += [
                    h.split(b": ")[1].decode() for h in head.split(b"\r\n") if b"empotency-" in h
                ]
                onward.sendall(data.replace(b"keep-alive", b"close     "))
                answer = b""
                while part := onward.recv(65_536):
                    answer += part
                if self.seen not in self.cut:
                    line.sendall(answer)
                self.seen += 1


def test_a_lost_answer_is_asked_for_again_with_the_same_key(running):
    """The charge was made and the answer lost: the client gets the report that was charged."""
    proxy = Proxy(running.port, {0, 1})
    proxy.start()
    subject = who()
    with wh.Client(f"http://127.0.0.1:{proxy.port}", token=running.token) as client:
        report = client.report(*HOME, subject=subject)
        assert report.charged
        assert len(proxy.keys) == 3
        assert len(set(proxy.keys)) == 1
        assert client.budget(subject).spent_per_m == report.epsilon.per_m
    proxy.listener.close()


def test_without_retries_a_lost_answer_is_an_error(running):
    proxy = Proxy(running.port, {0})
    proxy.start()
    with (
        wh.Client(f"http://127.0.0.1:{proxy.port}", token=running.token, retries=0) as client,
        pytest.raises(ServiceError, match="cannot be reached"),
    ):
        client.report(*HOME, subject=who())
    assert proxy.keys == []
    proxy.listener.close()


def test_the_command_line_asks_a_service(running, monkeypatch):
    monkeypatch.setenv("WHEREISH_TOKEN", running.token)
    asked = ["report", "--at", "-", "--server", running.url, "--subject", who(), "-n", "2"]
    done = CliRunner().invoke(cli, [*asked, "--level", "city", "--json"], input="48.85,2.33\n")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert (said["mechanism"], len(said["reports"]), said["charged"]) == ("city", 2, True)
    plain = CliRunner().invoke(cli, asked, input="48.85,2.33\n")
    assert plain.exit_code == 0
    assert "was charged" in plain.stderr
    wrong = CliRunner().invoke(cli, ["report", "--at", "48,2", "--epsilon", "1/m", "--level", "x"])
    assert wrong.exit_code != 0


def test_the_command_line_asks_what_is_near(running, monkeypatch):
    monkeypatch.setenv("WHEREISH_TOKEN", running.token)
    asked = ["nearby", "--at", "-", "--server", running.url, "--subject", who()]
    place = f"{HOME[1]},{HOME[0]}"
    done = CliRunner().invoke(cli, [*asked, "--radius", "500 m", "--json"], input=place)
    assert done.exit_code == 0, done.output
    said = json.loads(done.output)
    assert said["retrieval_radius_m"] == pytest.approx(500 + said["accuracy_m"])
    # A report so far off that no wanted place is fetched is one of 600: not all of four are.
    named = [*asked, "--level", "street", "--keep", "name"]
    found = [CliRunner().invoke(cli, named, input=place) for _ in range(4)]
    assert all(done.exit_code == 0 for done in found)
    assert all("places fetched within 99" in done.stderr for done in found)
    assert any("café" in done.stdout for done in found)
    levels = [["--epsilon", "1/m"], ["--mean-error", "300 m"], ["--within", "500 m"]]
    for more in (*levels, ["--places", "a.db"], ["--confidence", "0.9"]):
        done = CliRunner().invoke(cli, [*asked, *more], input=place)
        assert done.exit_code != 0
        assert "leave everything out" in str(done.exception)
