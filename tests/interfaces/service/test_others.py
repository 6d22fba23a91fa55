"""/v1/nearby with a real store of places, /v1/owntracks with a real recorder's end."""

from __future__ import annotations

import base64
import http.server
import json
import threading
from urllib.parse import unquote_plus

import numpy as np
import pandas as pd
import pytest

import whereish as wh
from whereish.publish.ledger import open_ledger

import service_process
from lbs.servers import overpass, serving

HOME = {"lon": 2.3331698, "lat": 48.8541234}
PHONE = {"_type": "location", **HOME, "tst": 1700000000, "tid": "an", "SSID": "home", "alt": 35}


class Recorder(http.server.BaseHTTPRequestHandler):
    """Takes what a phone in HTTP mode would post."""

    seen: list[tuple[str, dict]] = []  # noqa: RUF012
    status = 200

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.headers["X-Limit-U"], json.loads(body)))
        self.send_response(self.status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"[]")

    def log_message(self, *_) -> None: ...


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("others")
    rng = np.random.default_rng(3)
    cafes = pd.DataFrame(
        {
            "lon": rng.uniform(2.3, 2.37, 4000),
            "lat": rng.uniform(48.83, 48.88, 4000),
            "name": [f"cafe {i}" for i in range(4000)],
        }
    )
    wh.PlaceStore.build(folder / "cafes.db", cafes, keep=["name"]).close()
    recorder = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    threading.Thread(target=recorder.serve_forever, daemon=True).start()
    top = f"places = 'cafes.db'\nowntracks = 'http://127.0.0.1:{recorder.server_port}/pub'"
    with service_process.service(folder, top=top, rest="") as service:
        yield service, cafes
    recorder.shutdown()
    recorder.server_close()


def test_nearby_gives_the_true_results_where_it_says_so(made):
    service, cafes = made
    far = wh.Geodesic()(cafes[["lon", "lat"]].to_numpy(), np.array([[HOME["lon"], HOME["lat"]]]))
    true = set(cafes["name"][far <= 300])
    assert len(true) > 20
    complete = 0
    for i in range(80):
        answer = service.post("/v1/nearby", {**HOME, "radius_m": 300, "subject": f"s{i}"})
        names = [row["name"] for row in answer["results"]]
        assert set(names) <= true
        if answer["complete"]:
            complete += 1
            assert set(names) == true
        distances = [row["distance_m"] for row in answer["results"]]
        assert distances == sorted(distances)
        assert answer["fetched"] >= len(names)
    assert complete >= 60  # 0.95 of 80; fewer than 60 happens in 3 of 10^10 runs
    radius = wh.retrieval_radius(wh.GlobeLaplace("ln(4)/200 m"), "300 m", 0.95).m
    assert answer["retrieval_radius_m"] == pytest.approx(radius, abs=0.1)


def test_a_repeated_question_uses_the_same_report_and_keeps_no_results(made):
    service, _ = made
    body = {**HOME, "subject": "repeats"}
    answers = [service.post("/v1/nearby", body, key="again") for _ in range(3)]
    assert all(answer == answers[0] for answer in answers)
    ledger = open_ledger(service.folder / "state" / "ledger.db")
    assert len(ledger.statement("repeats").entries) == 1
    for path in (service.folder / "state").iterdir():
        assert b"cafe " not in path.read_bytes(), path.name


def test_nearby_needs_its_scope_and_a_fitting_body(made):
    service, _ = made
    token = service.token_for("reporter", "report")
    headers = {**service.headers, "Authorization": f"Bearer {token}"}
    assert service.ask("POST", "/v1/nearby", HOME, headers)[0] == 403
    for wrong in ({**HOME, "radius_m": 0}, {**HOME, "radius_m": 1e9}, {**HOME, "k": 3}, {}):
        assert service.ask("POST", "/v1/nearby", wrong)[0] == 422


def test_a_phone_in_http_mode(made):
    service, _ = made
    Recorder.seen.clear()
    token = service.token_for("phone", "report:city", subject="ann")
    basic = base64.b64encode(f"ann:{token}".encode()).decode()
    headers = {"Authorization": f"Basic {basic}", "Content-Type": "application/json"}
    assert service.ask("POST", "/v1/owntracks", PHONE, headers)[::2] == (200, b"[]")
    other = {**PHONE, "_type": "transition"}
    assert service.ask("POST", "/v1/owntracks", other, headers)[::2] == (200, b"[]")
    ((user, said),) = Recorder.seen
    assert user == "ann"
    assert set(said) == {"_type", "tid", "tst", "lon", "lat", "acc"}
    assert said["acc"] > 6000
    assert (said["lon"], said["lat"]) != (HOME["lon"], HOME["lat"])
    ledger = open_ledger(service.folder / "state" / "ledger.db")
    assert [entry.times for entry in ledger.statement("ann").entries] == [1]


def test_a_recorder_that_fails_is_told_and_stays_charged(made, monkeypatch):
    service, _ = made
    monkeypatch.setattr(Recorder, "status", 500)
    status, _, answer = service.ask("POST", "/v1/owntracks", PHONE)
    assert (status, json.loads(answer)["type"]) == (502, "urn:whereish:problem:upstream")


def test_a_source_elsewhere_is_told_reports_only(tmp_path):
    """An Overpass server that fails once: the same bytes again, and never the place."""
    rng = np.random.default_rng(5)
    places = np.column_stack([rng.normal(2.333, 0.006, 400), rng.normal(48.854, 0.004, 400)])
    names = [f"café {i}" for i in range(400)]
    with serving(overpass(places, names)) as foreign:
        foreign.faults = ["503"]
        what = 'what = \'nwr["amenity"="cafe"]\''
        rest = f"[source]\nkind = 'overpass'\nurl = '{foreign.url}'\n{what}\nkeep = ['name']\n"
        with service_process.service(tmp_path, rest=rest) as service:
            answers = [
                service.post("/v1/nearby", {**HOME, "subject": f"s{i}"}, key=f"k{i}")
                for i in range(6)
            ]
            again = service.post("/v1/nearby", {**HOME, "subject": "s0"}, key="k0")
            log = service.log.read_bytes()
    assert again == answers[0]
    assert len(foreign.seen) == 7  # six questions and one retry; the seventh came from the cache
    assert foreign.seen[0].body == foreign.seen[1].body
    far = wh.Geodesic()(places, np.array([[HOME["lon"], HOME["lat"]]]))
    for answer, seen in zip(answers, foreign.seen[1:], strict=True):
        report = answer["report"]
        assert f"{report['lat']:.9f},{report['lon']:.9f}" in unquote_plus(seen.body.decode())
        assert b"2.333169" not in seen.body
        assert "Cookie" not in seen.headers
        if answer["complete"]:
            assert len(answer["results"]) == (far <= 300).sum()
    assert b"2.333169" not in log
    assert b"amenity" not in log


def test_a_source_that_is_gone_is_a_problem_and_the_key_asks_again(tmp_path):
    with serving(overpass(np.empty((0, 2)), [])) as foreign:
        foreign.faults = ["404", ""]
        what = 'what = \'nwr["amenity"="cafe"]\''
        rest = f"[source]\nkind = 'overpass'\nurl = '{foreign.url}'\n{what}\n"
        with service_process.service(tmp_path, rest=rest) as service:
            headers = {**service.headers, "Idempotency-Key": "k"}
            status, _, answer = service.ask("POST", "/v1/nearby", HOME, headers)
            assert (status, json.loads(answer)["type"]) == (502, "urn:whereish:problem:upstream")
            found = service.post("/v1/nearby", HOME, key="k")
    assert found["results"] == []
    assert foreign.seen[0].body == foreign.seen[1].body
