"""The relay itself: over MQTT from topics to topics, over HTTP from phones to a recorder.

Each message that passes is one report, charged to its topic before it leaves.  What cannot be
read, paid or delivered is dropped, and counted; nothing is ever drawn again for a message.
"""

from __future__ import annotations

import logging
import uuid
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from whereish.errors import InvalidInput, MissingExtra, WhereishError
from whereish.interfaces.http.problems import Problem
from whereish.interfaces.owntracks.message import private_location, read_location
from whereish.interfaces.service.config import MechanismConfig
from whereish.interfaces.service.offered import Offered, offer
from whereish.publish.ledger import open_ledger
from whereish.publish.ledger.group import ChargeQueue, Order, Settled, immediate
from whereish.publish.ledger.ledger import Charge, Ledger

__all__ = ["MqttRelay", "Sanitizer"]

log = logging.getLogger("whereish.relay")
_LARGEST: Final = 65_536


@dataclass
class Sanitizer:
    """From a phone's message to one that may be passed on."""

    offered: Offered
    ledger: Ledger | None = None
    passed: int = 0
    dropped: int = 0
    _queue: ChargeQueue[Future[Settled]] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, said: MechanismConfig, ledger: str | None, cap: str | None) -> Sanitizer:
        """The mechanism of a configuration, charged to the ledger at an address."""
        book = None if ledger is None else open_ledger(ledger, cap=cap)
        return cls(offer(said, Path()), book)

    def __post_init__(self) -> None:
        if self.ledger is not None:
            self._queue = ChargeQueue(self.ledger, immediate)

    def private(self, payload: bytes, subject: str, topic: str | None) -> bytes | None:
        """The message to pass on, paid for; None where nothing may pass."""
        made = self._made(payload, subject, topic)
        if made is None:
            self.dropped += 1
        else:
            self.passed += 1
        return made

    def _made(self, payload: bytes, subject: str, topic: str | None) -> bytes | None:
        location = read_location(payload) if len(payload) <= _LARGEST else None
        if location is None:
            return None
        try:
            (report,) = self.offered.report([(location.lon, location.lat)])
            if self._queue is not None:
                future: Future[Settled] = Future()
                charge = Charge(subject, self.offered.epsilon)
                self._queue.submit(Order((charge,), uuid.uuid4().hex), future)
                self._queue.answered(future.result().release)
        except (Problem, WhereishError) as error:
            log.warning("a message was dropped (%s)", type(error).__name__)
            return None
        return private_location(location, report, self.offered.accuracy_m, topic)

    def close(self) -> None:
        """Finish what was charged."""
        if self._queue is not None:
            self._queue.close()


class MqttRelay:
    """Reads ``SOURCE/USER/DEVICE`` and publishes ``TARGET/USER/DEVICE`` on one broker.

    Let nobody but phones and this relay use the source's topics: the broker's access list says so.
    """

    def __init__(
        self,
        sanitizer: Sanitizer,
        *,
        host: str,
        port: int = 1883,
        source: str = "private/owntracks",
        target: str = "owntracks",
        username: str | None = None,
        password: str | None = None,
        tls: bool = False,
    ) -> None:
        try:
            from paho.mqtt.client import Client
            from paho.mqtt.enums import CallbackAPIVersion
        except ImportError:
            raise MissingExtra("paho-mqtt", "relay") from None
        for name in (source, target):
            if not name or set("+#\x00") & set(name) or name.endswith("/"):
                raise InvalidInput("topics must be plain names, such as private/owntracks")
        if source == target:
            raise InvalidInput("source and target topics must differ: reports would be relayed")
        self._sanitizer, self._source, self._target = sanitizer, source, target
        self._client: Any = Client(CallbackAPIVersion.VERSION2)
        if username is not None:
            self._client.username_pw_set(username, password)
        if tls:
            self._client.tls_set()
        self._client.on_connect = self._connected
        self._client.on_message = self._message
        self._client.connect(host, port)

    def run(self) -> None:
        """Relay until the process is ended."""
        self._client.loop_forever(retry_first_connection=True)

    def start(self) -> None:
        """Relay in a thread of its own."""
        self._client.loop_start()

    def stop(self) -> None:
        """End the thread and the connection."""
        self._client.disconnect()
        self._client.loop_stop()

    def _connected(self, client: Any, *_: Any) -> None:
        client.subscribe(f"{self._source}/+/+", qos=1)

    def _message(self, client: Any, _: Any, message: Any) -> None:
        # Phones keep their last place on the broker (retained); of a report that is as public as
        # any other, so the flag stays.
        parts = message.topic.removeprefix(f"{self._source}/").split("/")
        topic = f"{self._target}/{parts[0]}/{parts[1]}"
        made = self._sanitizer.private(message.payload, "/".join(parts), topic)
        if made is not None:
            client.publish(topic, made, qos=1, retain=bool(message.retain))
