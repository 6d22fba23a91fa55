"""No place of a request is ever in an answer, a log, a metric or a file."""

from __future__ import annotations

import http.client
import itertools
import random

import service_process

LON, LAT = "2.3331698765", "48.8541234567"
CANARIES = (b"3331698765", b"8541234567")
"""Digits that no report on a lattice of 5 decimals has."""


def bodies() -> list[bytes]:
    """Malformed in every way that we could think of, each with the place in it."""
    good = f'{{"lon": {LON}, "lat": {LAT}}}'
    return [
        text.encode()
        for text in (
            good[:-1],
            good + "}",
            f"[{good}]",
            f'{{"lon": "{LON}", "lat": "{LAT}"}}',
            f'{{"lon": {LAT}, "lat": {LAT}, "{LON}": 1}}',
            f'{{"lon": {LON}, "lat": 9{LAT}}}',
            f'{{"lon": {LON}, "lat": [{LAT}]}}',
            f'{{"lon": {LON}, "lat": {{"{LAT}": 1}}}}',
            f'{{"lon": {LON}, "lat": {LAT}, "mechanism": "{LAT} {LON}"}}',
            f'{{"lon": {LON}, "lat": {LAT}, "mechanism": "m{LAT}"}}',
            f'{{"lon": {LON}, "lat": {LAT}, "subject": "/{LAT}"}}',
            f'{{"lon": {LON}, "lat": {LAT}, "accuracy": {LAT}}}',
            f'{{"lon": {LON}e400, "lat": {LAT}}}',
            f'{{"lon": {LON}, "lat": -{LAT}e1}}',
            f'{{"places": [{good}, {{"lon": {LON}}}]}}',
            f'{{"places": [[{LON}, {LAT}]]}}',
            f'{{"places": {good}}}',
            f'{{"places": [{good}], "lon": {LON}}}',
            f'{{"step": {LAT}, "lon": {LON}, "lat": {LAT}}}',
            f'{{"step": "{LAT}", "lon": {LON}, "lat": {LAT}}}',
            f'{{"step": 99999999, "lon": {LON}, "lat": {LAT}}}',
            f'{{"trace": "{LON},{LAT}"}}',
            f"lon={LON}&lat={LAT}",
            f"{LAT},{LON}",
            f"\x00{LAT}\xff",
            f"<place lon='{LON}' lat='{LAT}'/>",
        )
    ]


def requests() -> list[tuple[str, str, bytes | None, dict[str, str]]]:
    routes = [
        ("POST", "/v1/report"),
        ("POST", "/v1/nearby"),
        ("POST", "/v1/traces"),
        ("POST", "/v1/traces/0123456789abcdef0123456789abcdef/steps"),
        ("POST", "/v1/owntracks"),
        ("DELETE", "/v1/traces/0123456789abcdef0123456789abcdef"),
        ("GET", "/v1/mechanisms"),
        ("GET", "/v1/mechanisms/street"),
        ("GET", "/v1/mechanisms/street/certificate"),
        ("GET", "/v1/budget/ann"),
        ("GET", "/readyz"),
        ("GET", "/metrics"),
        ("GET", "/docs"),
        ("GET", "/openapi.json"),
        ("GET", "/healthz"),
    ]
    kinds = ("application/json", "text/plain", f"text/{LAT}", "")
    made = []
    for (method, path), body in itertools.product(routes, bodies()):
        made.append((method, path, body, {"Content-Type": kinds[0]}))
    for method, path in routes:
        made += [
            (method, f"{path}?lon={LON}&lat={LAT}", bodies()[0], {"Content-Type": kinds[0]}),
            (method, f"{path}/{LAT},{LON}", bodies()[0], {"Content-Type": kinds[0]}),
            (method, f"{path}%2F{LAT}", None, {}),
            (f"X{method}", path, bodies()[1], {"X-Place": f"{LAT},{LON}"}),
            ("PATCH", path, bodies()[2], {"Cookie": f"place={LAT},{LON}"}),
            (method, path, bodies()[3], {"Content-Type": kinds[2]}),
            (method, path, bodies()[0], {"Idempotency-Key": f"\t{LAT}", "Content-Type": kinds[0]}),
            (method, path, bodies()[4], {"Authorization": f"Bearer wh_{LAT}_{LON}"}),
        ]
    random.Random(1).shuffle(made)
    return made


def hits(data: bytes) -> int:
    return sum(data.count(canary) for canary in CANARIES)


def test_500_malformed_requests_leave_no_trace_of_their_place(tmp_path):
    asked = requests()
    assert len(asked) >= 500
    with service_process.service(tmp_path) as made:
        found: list[int] = []
        line = http.client.HTTPConnection("127.0.0.1", made.port, timeout=60)
        for method, path, body, headers in asked:
            try:
                sent = {**made.headers, **headers}
                status, answered, answer = made.ask(method, path, body, sent, line)
            except (OSError, http.client.HTTPException, ValueError):
                line.close()  # refused before it was a request
                continue
            found.append(status)
            assert hits(answer) + hits(repr(answered).encode()) == 0, (method, path, answer)
        line.close()
        assert all(status < 500 for status in found)
        assert len(found) >= 490
        # A place that is well formed, too: in the report, and with a key that is kept.
        made.post("/v1/report", {"lon": float(LON), "lat": float(LAT)}, key=f"at {LAT}")
        session = made.post("/v1/traces", {})["session"]
        place = {"lon": float(LON), "lat": float(LAT)}
        made.post(f"/v1/traces/{session}/steps", {"step": 0, **place})
        _, _, metrics = made.ask("GET", "/metrics")
        assert hits(metrics) == 0
        made.stop()
        everything = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert {"log", "ledger.db", "tokens.json"} <= {path.name for path in everything}
        assert {path.name: hits(path.read_bytes()) for path in everything} == {
            path.name: 0 for path in everything
        }
        assert made.log.read_text().count("whereish.access") >= 490
