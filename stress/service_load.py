"""Load on a real service: many connections, kills in the middle, and what must hold after."""

from __future__ import annotations

import http.client
import json
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from whereish.interfaces.service.till import Names
from whereish.interfaces.service.tokens import secret_key
from whereish.publish.ledger import open_ledger

PLACE = {"lon": 2.33316, "lat": 48.85412}
_GONE = (OSError, http.client.HTTPException)


@dataclass
class Load:
    """Clients that ask with a new key each time, until the service is gone or they are stopped."""

    service: Any
    run: int
    clients: int = 8
    answers: dict[str, bytes] = field(default_factory=dict)
    sent: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        self._threads = [
            threading.Thread(target=self._client, args=(k,)) for k in range(self.clients)
        ]
        for thread in self._threads:
            thread.start()

    def wait_for_answers(self, wait_s: float = 60) -> None:
        """Until the first came: a machine with other work may need longer than any sleep."""
        end = time.monotonic() + wait_s
        while not self.answers and time.monotonic() < end:
            time.sleep(0.01)

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def body(self, key: str) -> dict[str, Any]:
        return {**PLACE, "subject": f"run-{self.run}-{key.split('-')[1]}"}

    def _client(self, k: int) -> None:
        line = http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=60)
        i = 0
        while not self._stop.is_set():
            key = f"{self.run}-{k}-{i}"
            i += 1
            self.sent.append(key)
            headers = {**self.service.headers, "Idempotency-Key": key}
            try:
                status, _, answer = self.service.ask(
                    "POST", "/v1/report", self.body(key), headers, line
                )
            except _GONE:
                break
            if status == 200:
                self.answers[key] = answer
        line.close()


def kill_under_load(service: Any, run: int, address: str, seconds: float) -> dict[str, int]:
    """kill -9 after some load; then all that must hold is checked, and counted.

    Every answered report was charged; every charge that was not answered is pending; a key that
    is asked again after the restart gets its first answer and no second charge.
    """
    load = Load(service, run)
    load.start()
    load.wait_for_answers()
    time.sleep(seconds)
    service.kill()
    load.stop()
    ledger = open_ledger(address)
    names = Names(secret_key(service.folder / "state"))
    token = service.token.split("_")[1]
    lines = {
        entry.release: entry
        for k in range(load.clients)
        for entry in ledger.statement(f"run-{run}-{k}").entries
    }
    release = {key: names.release(token, key) for key in load.sent}
    uncharged = sum(release[key] not in lines for key in load.answers)
    unanswered = [k for k in load.sent if k not in load.answers and release[k] in lines]
    hidden = sum(lines[release[key]].state != "pending" for key in unanswered)
    service.start()
    other = 0
    for key in [*list(load.answers)[-20:], *unanswered]:
        headers = {**service.headers, "Idempotency-Key": key}
        first = service.ask("POST", "/v1/report", load.body(key), headers)[2]
        again = service.ask("POST", "/v1/report", load.body(key), headers)[2]
        other += first != again or (key in load.answers and load.answers[key] != first)
        other += "lon" not in json.loads(first)
    after = [e for k in range(load.clients) for e in ledger.statement(f"run-{run}-{k}").entries]
    return {
        "answered": len(load.answers),
        "charged, not answered": len(unanswered),
        "answered, not charged": uncharged,
        "not answered, but not pending": hidden,
        "second reports": other,
        "second charges": len(after) - len({entry.release for entry in after}),
        "charges by repetition": len(after) - len(lines),
    }


WRONG = (
    "answered, not charged",
    "not answered, but not pending",
    "second reports",
    "second charges",
    "charges by repetition",
)


def repeat_one_key(service: Any, repeats: int, connections: int = 8) -> set[bytes]:
    """The answers that one key gets over several connections; the service restarts halfway."""
    answers: set[bytes] = set()
    headers = {**service.headers, "Idempotency-Key": "one"}
    body = {**PLACE, "subject": "repeated"}

    def client() -> None:
        line = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
        for _ in range(repeats // connections // 2):
            status, _, answer = service.ask("POST", "/v1/report", body, headers, line)
            answers.add(answer if status == 200 else b"%d" % status)
        line.close()

    for half in range(2):
        threads = [threading.Thread(target=client) for _ in range(connections)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if half == 0:
            service.stop()
            service.start()
    return answers
