"""Injection, traversal, smuggling, oversize: bytes on a raw connection, and no effect."""

from __future__ import annotations

import json
import socket

import pytest

from whereish.publish.ledger import open_ledger

GOOD = b'{"lon": 2, "lat": 48, "subject": "victim"}'
CRLF = b"\r\n"


def head(token: bytes, path: bytes = b"/v1/report", method: bytes = b"POST") -> bytes:
    return (
        method + b" " + path + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Authorization: Bearer " + token + CRLF
    )


NAMES = [
    b"'; DROP TABLE whereish_entries; --",
    b'ann" OR "1"="1',
    b"ann' UNION SELECT answer FROM whereish_answers --",
    b"%s%s%n",
    b"{{7*7}}",
    b"${jndi:ldap://127.0.0.1/a}",
    b"<script>alert(1)</script>",
    b"$(touch owned)",
    b"`id`",
    b"ann\\u0000bob",
    b"ann\\nHTTP/1.1 200 OK",
    b"../../etc/passwd",
    b"=cmd|' /C calc'!A0",
    b"\\ud800",
]
PATHS = [
    b"/v1/mechanisms/../../../../etc/passwd",
    b"/v1/mechanisms/..%2f..%2f..%2fetc%2fpasswd",
    b"/v1/mechanisms/%2e%2e/%2e%2e/etc/passwd",
    b"/v1/mechanisms/%00",
    b"/v1/mechanisms/street%00.npz",
    b"/v1/budget/'%20OR%20'1'='1",
    b"/v1/budget/%27%3B%20DROP%20TABLE%20whereish_entries%3B--",
    b"/v1/budget/ann%0d%0aSet-Cookie:%20a=b",
    b"//v1/report",
    b"/v1//budget/ann",
    b"/v1/budget/" + b"a" * 5000,
    b"/v1/traces/../budget/ann",
    b"http://evil.example/v1/mechanisms/x/y/z",
    b"/v1/mechanisms;jsessionid=1",
    b"/healthz/../v1/mechanisms",
    b"/healthz%2f..%2fmetrics",
    b"/\xff\xfe",
    b"*",
]


def raw(n: int, rest: bytes) -> bytes:
    return b"Content-Length: " + str(n).encode() + CRLF + CRLF + rest


def payloads(token: bytes) -> dict[str, bytes]:
    """Name and bytes of each attack."""
    smuggled = head(token) + raw(len(GOOD), GOOD)
    made = {
        f"name {i}": head(token) + raw(len(body), body)
        for i, body in enumerate(b'{"lon": 2, "lat": 48, "subject": "' + n + b'"}' for n in NAMES)
    }
    made |= {f"path {i}": head(token, path, b"GET") + CRLF for i, path in enumerate(PATHS)}
    chunked = b"Transfer-Encoding: chunked\r\n"
    made |= {
        "two lengths": head(token) + b"Content-Length: 5\r\n" + raw(len(GOOD), GOOD),
        "length and chunked": head(token) + chunked + raw(5, b"0\r\n\r\n" + smuggled),
        "chunked and length": head(token) + b"Content-Length: 5\r\n" + chunked + CRLF + b"0\r\n\r\n"
        + smuggled,
        "chunked twice": head(token) + chunked + chunked + CRLF + b"0\r\n\r\n" + smuggled,
        "chunked, spaced": head(token) + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + smuggled,
        "chunked, tabbed": head(token) + b"Transfer-Encoding:\tchunked, identity\r\n\r\n0\r\n\r\n"
        + smuggled,
        "negative length": head(token) + b"Content-Length: -1\r\n\r\n" + smuggled,
        "plus length": head(token) + b"Content-Length: +5\r\n\r\nabcde",
        "hex length": head(token) + b"Content-Length: 0x10\r\n\r\n" + GOOD,
        "huge length": head(token) + b"Content-Length: 99999999999999999999\r\n\r\n" + GOOD,
        "negative chunk": head(token) + chunked + CRLF + b"-1\r\n" + GOOD,
        "huge chunk": head(token) + chunked + CRLF + b"FFFFFFFFFFFFFFFFF\r\n" + GOOD,
        "large body, chunked": head(token) + chunked + CRLF
        + b"".join(b"4000\r\n" + b" " * 0x4000 + CRLF for _ in range(8)) + b"0\r\n\r\n",
        "large head": head(token) + b"X: " + b"a" * 2_000_000 + CRLF + CRLF,
        "many headers": head(token) + b"X: a\r\n" * 100_000 + CRLF,
        "long line": b"GET /" + b"a" * 2_000_000,
        "two hosts": head(token) + b"Host: evil.example\r\n" + CRLF,
        "two tokens": head(token) + b"Authorization: Bearer x\r\n" + raw(len(GOOD), GOOD),
        "folded header": head(token) + b"X: a\r\n b\r\n" + CRLF,
        "split header": head(token)[:-2] + b"\r\rX: b\r\n" + CRLF,
        "null header": head(token) + b"X: a\x00b\r\n\r\n",
        "upgrade": head(token, b"/v1/report", b"GET")
        + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: a\r\n\r\n",
        "h2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "deep": head(token) + raw(40_000, b"[" * 40_000),
        "no http": b"\x16\x03\x01" + b"\x00" * 200,
    }  # fmt: skip
    return made


def sent(port: int, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as line:
        line.settimeout(2.0)
        answer = b""
        try:
            line.sendall(data)
            line.shutdown(socket.SHUT_WR)
            while part := line.recv(65_536):
                answer += part
        except OSError:
            pass
        return answer


@pytest.fixture(scope="module")
def answers(running):
    running.post("/v1/report", {"lon": 2, "lat": 48, "subject": "ann"})
    return {
        name: sent(running.port, data) for name, data in payloads(running.token.encode()).items()
    }


def test_there_are_fifty(answers):
    assert len(answers) >= 50


def test_nothing_is_answered_with_success_or_failure_of_the_service(answers):
    """A smuggled second request would be charged to the victim; a crash would answer 500."""
    good = {"huge length", "deep"}
    for name, answer in answers.items():
        statuses = [int(line[9:12]) for line in answer.split(CRLF) if line.startswith(b"HTTP/1.1")]
        assert len(statuses) <= (1 if name not in good else 2), name
        assert all(400 <= status < 500 for status in statuses), (name, answer[:200])
        assert b"root:" not in answer
        assert b"Set-Cookie" not in answer


def test_nobody_was_charged_and_the_service_still_answers(running, answers):
    ledger = open_ledger(running.folder / "state" / "ledger.db")
    assert ledger.statement("victim").entries == ()
    assert len(ledger.statement("ann").entries) == 1
    assert running.post("/v1/report", {"lon": 2, "lat": 48, "subject": "after"})["charged"]
    status = (running.process and running.process.poll()) is None
    assert status
    text = running.log.read_text()
    assert "Traceback" not in text
    assert "HTTP/1.1 200 OK" not in text


def test_a_slow_body_is_given_up(tmp_path):
    import service_process

    with service_process.service(tmp_path, limits="body_timeout_s = 0.5", rest="") as made:
        data = head(made.token.encode()) + b"Content-Length: 50\r\n\r\n{"
        with socket.create_connection(("127.0.0.1", made.port), timeout=10) as line:
            line.sendall(data)
            answer = b""  # head and body may come in parts
            while b"}" not in answer and (part := line.recv(4096)):
                answer += part
        assert answer.startswith(b"HTTP/1.1 408")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["type"].endswith("timeout")
