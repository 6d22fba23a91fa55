"""Every route of the real service: what it answers, charges, refuses."""

from __future__ import annotations

import json
import math
import re
import time
import uuid

import pytest

import whereish as wh
from whereish.publish.ledger import open_ledger

import service_process

EPS = wh.Epsilon.of("ln(4)/200 m").per_m
PLACE = {"lon": 2.3331698, "lat": 48.8541234}


def who() -> str:
    return f"subject-{uuid.uuid4().hex[:8]}"


def test_only_healthz_answers_without_a_token(running):
    asked = [
        *[("GET", p) for p in ("/readyz", "/metrics", "/openapi.json", "/docs", "/v1/mechanisms")],
        *[("GET", p) for p in ("/v1/mechanisms/street", "/v1/mechanisms/street/certificate")],
        *[
            ("GET", p)
            for p in ("/v1/budget/ann", "/", "/nothing", "/healthz/", "/healthz/../readyz")
        ],
        *[("POST", p) for p in ("/v1/report", "/v1/traces", "/v1/traces/0/steps", "/v1/nearby")],
        ("DELETE", "/v1/traces/0"),
        ("OPTIONS", "/v1/report"),
    ]
    wrong = ({}, {"Authorization": "Bearer "}, {"Authorization": f"Bearer {running.token}x"})
    wrong += (
        {"Authorization": f"Basic {running.token}"},
        {"Authorization": "Bearer wh_00000000_x"},
    )
    for headers in wrong:
        for method, path in asked:
            status, found, answer = running.ask(method, path, None, headers)
            assert status == 401, (method, path)
            assert found["www-authenticate"] == "Bearer"
            assert json.loads(answer)["type"] == "urn:whereish:problem:unauthorized"
        assert running.ask("GET", "/healthz", None, headers)[0] == 200


def test_a_report_is_charged_and_says_how_far_off_it_is(running):
    subject = who()
    answer = running.post("/v1/report", {**PLACE, "subject": subject})
    assert answer["mechanism"] == "street"
    assert answer["charged"] is True
    assert answer["epsilon_per_m"] == EPS
    assert (
        answer["accuracy_m"] == math.ceil(10 * wh.GlobeLaplace("ln(4)/200 m").quantile(0.95).m) / 10
    )
    assert (answer["lon"], answer["lat"]) == (round(answer["lon"], 5), round(answer["lat"], 5))
    _, _, budget = running.ask("GET", f"/v1/budget/{subject}")
    assert json.loads(budget)["spent_per_m"] == EPS


def test_reports_follow_the_law(running):
    """The mean distance of 4000 reports of one place is within 6 standard errors of the law's.

    So many that what is within 6 of them is more than 6 from a mean of 1.15 times as much.
    """
    asked = {"places": [PLACE] * 1000}
    reports = [
        report
        for _ in range(4)
        for report in running.post("/v1/report", {**asked, "subject": who()})["reports"]
    ]
    import numpy as np

    z = np.array([[r["lon"], r["lat"]] for r in reports])
    far = wh.GreatCircle()(z, np.full_like(z, [PLACE["lon"], PLACE["lat"]]))
    error = math.sqrt(2) / EPS / math.sqrt(len(far))
    assert abs(far.mean() - 2 / EPS) < 6 * error
    assert abs(far.mean() - 2.3 / EPS) > 6 * error
    assert len({(r["lon"], r["lat"]) for r in reports}) > 3800


def test_two_levels_for_one_person_add_up(running):
    subject = who()
    for level in ("street", "city"):
        running.post("/v1/report", {**PLACE, "mechanism": level, "subject": subject})
    running.post("/v1/report", {"places": [PLACE] * 3, "mechanism": "city", "subject": subject})
    _, _, budget = running.ask("GET", f"/v1/budget/{subject}")
    assert json.loads(budget)["spent_per_m"] == pytest.approx(EPS + 4 * EPS / 10, rel=1e-12)


def test_a_token_sees_its_own_level_and_subject_only(running):
    token = running.token_for(f"friends-{uuid.uuid4().hex[:6]}", "report:city", subject="bob")
    headers = {**running.headers, "Authorization": f"Bearer {token}"}
    status, _, answer = running.ask("POST", "/v1/report", PLACE, headers)
    assert (status, json.loads(answer)["mechanism"]) == (200, "city")
    refused = [
        ("POST", "/v1/report", {**PLACE, "mechanism": "street"}, 404),
        ("POST", "/v1/report", {**PLACE, "subject": "ann"}, 403),
        ("GET", "/v1/budget/bob", None, 403),
        ("GET", "/metrics", None, 403),
        ("POST", "/v1/traces", {}, 403),
        ("GET", "/v1/mechanisms/street", None, 404),
        ("GET", "/v1/mechanisms/street/certificate", None, 404),
    ]
    for method, path, body, expected in refused:
        assert running.ask(method, path, body, headers)[0] == expected, path
    _, _, seen = running.ask("GET", "/v1/mechanisms", None, headers)
    assert [m["id"] for m in json.loads(seen)["mechanisms"]] == ["city"]
    assert json.loads(seen)["traces"] == []


def test_a_removed_token_is_refused_within_a_second(running):
    import subprocess
    import sys

    name = f"lost-{uuid.uuid4().hex[:6]}"
    token = running.token_for(name, "report")
    headers = {**running.headers, "Authorization": f"Bearer {token}"}
    assert running.ask("GET", "/v1/mechanisms", None, headers)[0] == 200
    remove = [sys.executable, "-m", "whereish", "token", "remove", name, "--config"]
    subprocess.run([*remove, running.config], check=True)
    time.sleep(1.1)
    assert running.ask("GET", "/v1/mechanisms", None, headers)[0] == 401


def test_tokens_and_keys_are_kept_as_hashes_and_for_the_owner_alone(running):
    state = running.folder / "state"
    secret = running.token.split("_", 2)[2]
    for path in state.iterdir():
        assert secret.encode() not in path.read_bytes(), path.name
        assert path.stat().st_mode & 0o077 == 0, path.name


def test_the_certificate_has_the_whole_guarantee(running):
    _, _, answer = running.ask("GET", "/v1/mechanisms/city/certificate")
    said = json.loads(answer)
    told = wh.Guarantee.from_json(said["guarantee"])
    assert told == wh.GlobeLaplace("ln(4)/2 km").guarantee
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]+\+00:00", said["verified_at"])


WRONG = [
    (b"", 400),
    (b"[", 422),
    (b"\xff\xfe", 400),
    (b"[]", 422),
    (b"{}", 422),
    (b'{"lon": 2}', 422),
    (b'{"lon": "2", "lat": 48}', 422),
    (b'{"lon": true, "lat": 48}', 422),
    (b'{"lon": null, "lat": 48}', 422),
    (b'{"lon": NaN, "lat": 48}', 400),
    (b'{"lon": 1e999, "lat": 48}', 422),
    (b'{"lon": 361, "lat": 48}', 422),
    (b'{"lon": 2, "lat": 90.0001}', 422),
    (b'{"lon": 2, "lat": 48, "epsilon": "9/m"}', 422),
    (b'{"lon": 2, "lat": 48, "subject": "a b"}', 422),
    (b'{"lon": 2, "lat": 48, "subject": ""}', 422),
    (b'{"lon": 2, "lat": 48, "mechanism": "../street"}', 422),
    (b'{"lon": 2, "lat": 48, "mechanism": "other"}', 404),
    (b'{"places": []}', 422),
    (b'{"places": [[2, 48]]}', 422),
    (b'{"places": [{"lon": 2, "lat": 48}], "lon": 2}', 422),
    (b'{"places": ' + json.dumps([PLACE] * 1001).encode() + b"}", 413),
    (b'{"lon": 2, "lat": 48' + b" " * 70_000 + b"}", 413),
]


@pytest.mark.parametrize(("body", "status"), WRONG, ids=range(len(WRONG)))
def test_bodies_are_strict(running, body, status):
    found, headers, answer = running.ask("POST", "/v1/report", body)
    assert found == status, answer
    assert headers["content-type"] == "application/problem+json"
    said = json.loads(answer)
    assert said["status"] == status
    assert said["type"].startswith("urn:whereish:problem:")


def test_what_else_is_refused(running):
    kind = {**running.headers, "Content-Type": "text/plain"}
    assert running.ask("POST", "/v1/report", PLACE, kind)[0] == 415
    assert running.ask("POST", "/v1/report?lon=2", PLACE)[0] == 400
    status, headers, _ = running.ask("GET", "/v1/report")
    assert (status, headers["allow"]) == (405, "POST")
    assert running.ask("GET", "/v2/report")[0] == 404
    assert running.ask("GET", "/v1/budget/a%20b")[0] == 404
    for key in ("", "x" * 201, "a\tb"):
        headers = {**running.headers, "Idempotency-Key": key}
        assert running.ask("POST", "/v1/report", PLACE, headers)[0] == 400


def test_one_key_one_report_one_charge(running):
    subject = who()
    body = {**PLACE, "subject": subject}
    answers = [running.post("/v1/report", body, key=f"k {subject}") for _ in range(5)]
    assert all(answer == answers[0] for answer in answers)
    other = {**running.headers, "Idempotency-Key": f"k {subject}"}
    status, _, _ = running.ask("POST", "/v1/report", {**body, "lon": 2.33317}, other)
    assert status == 422
    _, _, budget = running.ask("GET", f"/v1/budget/{subject}")
    assert json.loads(budget)["spent_per_m"] == EPS


def test_a_trace_session(running):
    subject = who()
    begun = running.post("/v1/traces", {"subject": subject}, key=f"t {subject}")
    assert running.post("/v1/traces", {"subject": subject}, key=f"t {subject}") == begun
    steps = f"/v1/traces/{begun['session']}/steps"
    answers = [running.post(steps, {"step": i, **PLACE, "time_s": 60.0 * i}) for i in range(6)]
    assert answers[0]["fresh"] is True
    assert [a["step"] for a in answers] == list(range(6))
    spent = [a["spent_per_m"] for a in answers]
    assert spent == sorted(spent)
    assert spent[-1] <= begun["total_per_m"]
    # The radius of a fresh report, and of one that passed a test, at 0.95: public, so one each.
    radii = {
        fresh: {a["accuracy_m"] for a in answers if a["fresh"] is fresh} for fresh in (True, False)
    }
    budget = wh.FixedUtility("500 m", tests="every")
    noise = wh.GlobeLaplace(wh.Epsilon(budget.level)).quantile(0.975).m
    (fresh_m,) = radii[True]
    assert fresh_m == pytest.approx(noise, abs=0.2)
    assert all(radius > budget.accuracy.m for radius in radii[False])
    assert len(radii[False]) <= 1
    # The same step gives the same report; another place for it is refused, and so is a gap.
    assert running.post(steps, {"step": 3, **PLACE, "time_s": 180.0}) == answers[3]
    assert running.ask("POST", steps, {"step": 3, "lon": 2, "lat": 48, "time_s": 180.0})[0] == 422
    assert running.ask("POST", steps, {"step": 8, **PLACE})[0] == 409
    assert running.ask("POST", steps, {"step": 6, **PLACE, "time_s": 10.0})[0] == 422
    _, _, budget = running.ask("GET", f"/v1/budget/{subject}")
    assert json.loads(budget)["spent_per_m"] == begun["total_per_m"]
    other = running.token_for(f"other-{uuid.uuid4().hex[:6]}", "traces")
    headers = {**running.headers, "Authorization": f"Bearer {other}"}
    assert running.ask("POST", steps, {"step": 6, **PLACE}, headers)[0] == 404
    status, _, closed = running.ask("DELETE", f"/v1/traces/{begun['session']}")
    assert (status, json.loads(closed)["steps"]) == (200, 6)
    assert running.ask("DELETE", f"/v1/traces/{begun['session']}")[0] == 200
    assert running.ask("POST", steps, {"step": 6, **PLACE, "time_s": 400.0})[0] == 409


def test_a_trace_ends_when_its_total_is_spent(running):
    begun = running.post("/v1/traces", {"subject": who()})
    steps = f"/v1/traces/{begun['session']}/steps"
    for i in range(100):
        status, _, answer = running.ask("POST", steps, {"step": i, "lon": 3.0 * i - 150, "lat": 0})
        if status != 200:
            break
    assert status == 409
    assert json.loads(answer)["type"].endswith("budget-exceeded")
    assert i >= 3


def test_metrics_count_by_route_and_hold_no_path(running):
    running.post("/v1/report", {**PLACE, "subject": who()})
    _, headers, text = running.ask("GET", "/metrics")
    assert headers["content-type"].startswith("text/plain")
    routes = set(re.findall(rb'route="([^"]*)"', text))
    assert b"/v1/report" in routes
    assert all(b"subject-" not in route and b"%" not in route for route in routes)
    assert re.search(rb"whereish_reports_total [1-9]", text)


def test_the_page_needs_nothing_from_elsewhere(running):
    _, headers, text = running.ask("GET", "/docs")
    assert headers["content-security-policy"] == "default-src 'none'"
    assert b"://" not in text.replace(b"http://json-schema", b"")
    assert b"<script" not in text
    assert b"/v1/report" in text


def test_every_route_is_in_the_document(running):
    _, _, text = running.ask("GET", "/openapi.json")
    said = json.loads(text)
    from whereish.interfaces.service.routes import routes

    class Nothing:
        def __getattr__(self, name: str):
            async def endpoint(request): ...

            return endpoint

    paths = {route.path for route in routes(Nothing())}
    assert paths - set(said["paths"]) == {"/openapi.json", "/docs"}


def test_the_access_log_has_method_route_status_and_time_only(running):
    running.post("/v1/report", {**PLACE, "subject": who()})
    lines = [line for line in running.log.read_text().splitlines() if "whereish.access" in line]
    shape = r"[\d-]+ [\d:,]+ whereish\.access INFO [A-Z]+ (\(none\)|/[a-z0-9/{}._]*) \d{3} [\d.]+ms"
    assert lines
    assert all(re.fullmatch(shape, line) for line in lines)


def test_limits_answer_429_and_413_with_retry_after(tmp_path):
    limits = "body_bytes = 300\nbatch = 2"
    with service_process.service(tmp_path, cap="ln(4)/100 m", limits=limits, rest="") as small:
        config = small.config.read_text()
        status, _, _ = small.ask("POST", "/v1/report", b" " * 301)
        assert status == 413
        assert small.ask("POST", "/v1/report", {"places": [PLACE] * 3})[0] == 413
        # The budget of two reports, then a refusal that charges nothing.
        statuses = [small.ask("POST", "/v1/report", PLACE)[0] for _ in range(3)]
        assert statuses == [200, 200, 409]
        small.stop()
        assert "Application shutdown complete" in small.log.read_text()
        small.config.write_text(
            config.replace("rate_per_s = 1e6", "rate_per_s = 0.02").replace(
                "burst = 1000000", "burst = 3"
            )  # the next in 50 s, however slow the machine is
        )
        small.start()
        found = [small.ask("GET", "/v1/mechanisms") for _ in range(5)]
        assert [status for status, _, _ in found] == [200, 200, 200, 429, 429]
        assert 10 <= int(found[-1][1]["retry-after"]) <= 51
        assert small.ask("GET", "/healthz")[0] == 200
        # Two reports left: pending is what a crash leaves, and nothing was killed here.
        entries = open_ledger(tmp_path / "state" / "ledger.db").statement("first").entries
        assert [entry.state for entry in entries] == ["released", "released"]


def test_without_tokens_only_names_of_this_machine_are_answered(tmp_path):
    options = ("--no-auth",)
    with service_process.service(tmp_path, ledger=None, rest="", options=options) as bare:
        kind = {"Content-Type": "application/json"}
        status, _, answer = bare.ask("POST", "/v1/report", PLACE, kind)
        assert status == 200
        assert json.loads(answer)["charged"] is False
        for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", ""):
            assert bare.ask("POST", "/v1/report", PLACE, {**kind, "Host": host})[0] in (400, 421)
        assert bare.ask("POST", "/v1/report", PLACE, {**kind, "Host": "[::1]:1"})[0] == 200
        keyed = {**kind, "Idempotency-Key": "k"}
        assert bare.ask("POST", "/v1/report", PLACE, keyed)[0] == 400
        assert bare.ask("GET", "/v1/budget/ann", None, kind)[0] == 404


def test_a_subject_may_be_called_places(running):
    answer = running.post("/v1/report", {"lon": 2.35, "lat": 48.85, "subject": "places"})
    assert answer["charged"]
