"""The OwnTracks relay: what passes, over a real mosquitto and through the service."""

from __future__ import annotations

import contextlib
import json
import queue
import shutil
import socket
import subprocess
import time

import pytest

import whereish as wh
from whereish.errors import InvalidInput
from whereish.interfaces.owntracks.message import read_location
from whereish.interfaces.owntracks.relay import MqttRelay, Sanitizer
from whereish.interfaces.service.config import MechanismConfig
from whereish.publish.ledger import open_ledger

import service_process

EPS = "ln(4)/200 m"
# As the phones send it (booklet, "location"), with all that would tell the place.
PHONE = {
    "_type": "location", "_id": "2f6a", "BSSID": "b4:de:31:00:00:01", "SSID": "home", "acc": 12,
    "alt": 35, "batt": 81, "bs": 1, "cog": 271, "conn": "w", "created_at": 1700000001,
    "inregions": ["home"], "inrids": ["6da9cf"], "lat": 48.8541234567, "lon": 2.3331698765, "m": 1,
    "p": 101.3, "poi": "cafe", "rad": 30, "t": "u", "tag": "x", "tid": "an", "tst": 1700000000,
    "vac": 3, "vel": 4, "topic": "owntracks/ann/phone", "desc": "at 48.8541234567",
}  # fmt: skip
KEPT = {"_type", "tid", "tst", "batt", "conn", "topic", "lon", "lat", "acc"}


def sanitizer(tmp_path=None, cap: str = "1/m") -> Sanitizer:
    ledger = None if tmp_path is None else str(tmp_path / "ledger.db")
    return Sanitizer.of(MechanismConfig("relay", EPS), ledger, cap)


def test_only_the_named_fields_pass_and_the_place_is_a_report():
    made = sanitizer()
    said = json.loads(made.private(json.dumps(PHONE).encode(), "ann/phone", "owntracks/ann/phone"))
    assert set(said) == KEPT
    assert {name: said[name] for name in ("tid", "tst", "batt", "conn", "topic")} == {
        name: PHONE[name] for name in ("tid", "tst", "batt", "conn", "topic")
    }
    assert said["acc"] == 693  # 95% radius, rounded up
    assert (said["lon"], said["lat"]) != (PHONE["lon"], PHONE["lat"])
    assert (round(said["lon"], 5), round(said["lat"], 5)) == (said["lon"], said["lat"])
    again = json.loads(made.private(json.dumps(PHONE).encode(), "ann/phone", None))
    assert set(again) == KEPT - {"topic"}
    assert (again["lon"], again["lat"]) != (said["lon"], said["lat"])


NO_LOCATION = [
    b"",
    b"{}",
    b"\xff",
    b"[1]",
    json.dumps({**PHONE, "_type": "transition"}).encode(),
    json.dumps({**PHONE, "_type": "waypoint"}).encode(),
    json.dumps({**PHONE, "_type": "lwt"}).encode(),
    json.dumps({**PHONE, "lat": "48.85"}).encode(),
    json.dumps({**PHONE, "lat": 91}).encode(),
    json.dumps({**PHONE, "tid": "48.8541234567"}).encode(),
    json.dumps({**PHONE, "tst": 48.8541234567}).encode(),
    json.dumps({**PHONE, "batt": 48.8541234567}).encode(),
    json.dumps({**PHONE, "conn": "48.8541234567"}).encode(),
    json.dumps({key: value for key, value in PHONE.items() if key != "lon"}).encode(),
    json.dumps({**PHONE, "x": "a" * 70_000}).encode(),
]


@pytest.mark.parametrize("payload", NO_LOCATION, ids=range(len(NO_LOCATION)))
def test_everything_else_is_dropped(payload):
    made = sanitizer()
    assert made.private(payload, "ann/phone", "t") is None
    assert (made.passed, made.dropped) == (0, 1)


def test_each_message_is_charged_and_none_passes_beyond_the_budget(tmp_path):
    made = sanitizer(tmp_path, cap="ln(4)/100 m")
    payload = json.dumps(PHONE).encode()
    passed = [made.private(payload, "ann/phone", None) is not None for _ in range(4)]
    assert passed == [True, True, False, False]
    assert made.private(payload, "bob/phone", None) is not None
    made.close()
    ledger = open_ledger(tmp_path / "ledger.db")
    assert [entry.state for entry in ledger.statement("ann/phone").entries] == ["released"] * 2


def test_topics_that_would_loop_or_match_others_are_refused():
    for topics in ({"source": "a", "target": "a"}, {"source": "a/#"}, {"target": "+"}):
        with pytest.raises(InvalidInput):
            MqttRelay(sanitizer(), host="127.0.0.1", **topics)


def test_the_fields_of_the_booklet_are_read():
    assert read_location(json.dumps(PHONE).encode()).tid == "an"


@contextlib.contextmanager
def mosquitto(folder):
    program = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
    if program is None:
        pytest.skip("mosquitto is not installed: see scripts/system-packages.sh")
    port = service_process.free_port()
    config = folder / "mosquitto.conf"
    config.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\n")
    broker = subprocess.Popen(
        [program, "-c", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.05)
        yield port
    finally:
        broker.terminate()
        broker.wait(timeout=20)


def test_a_phone_and_a_friend_on_a_real_broker(tmp_path):
    from paho.mqtt.client import Client
    from paho.mqtt.enums import CallbackAPIVersion

    with mosquitto(tmp_path) as port:
        made = sanitizer(tmp_path)
        relay = MqttRelay(made, host="127.0.0.1", port=port)
        relay.start()
        seen: queue.Queue = queue.Queue()
        ready: queue.Queue = queue.Queue()
        friend, phone = (Client(CallbackAPIVersion.VERSION2) for _ in range(2))
        friend.on_message = lambda _, __, message: seen.put((message.topic, message.payload))
        friend.on_connect = lambda client, *_: client.subscribe("owntracks/#", qos=1)
        friend.on_subscribe = lambda *_: ready.put(None)
        friend.connect("127.0.0.1", port)
        friend.loop_start()
        phone.connect("127.0.0.1", port)
        phone.loop_start()
        ready.get(timeout=60)
        # The relay has its subscription once something passes.
        passed, end = None, time.monotonic() + 60
        while passed is None and time.monotonic() < end:
            phone.publish("private/owntracks/eve/phone", json.dumps(PHONE), qos=1)
            with contextlib.suppress(queue.Empty):
                passed = seen.get(timeout=0.5)
        phone.publish("private/owntracks/eve/last", json.dumps(PHONE), qos=1)
        while seen.get(timeout=60)[0] != "owntracks/eve/last":
            pass  # what was asked for more than once
        for payload in (*NO_LOCATION, json.dumps(PHONE).encode(), *NO_LOCATION):
            phone.publish("private/owntracks/ann/phone", payload, qos=1)
        phone.publish("private/owntracks/ann/phone/event", json.dumps(PHONE), qos=1)
        phone.publish("private/owntracks/bob/tablet", json.dumps(PHONE), qos=1)
        found = [seen.get(timeout=60) for _ in range(2)]
        time.sleep(0.3)
        assert seen.empty()
        for client in (phone, friend):
            client.disconnect()
            client.loop_stop()
        relay.stop()
        made.close()
    assert [topic for topic, _ in found] == ["owntracks/ann/phone", "owntracks/bob/tablet"]
    for topic, payload in found:
        said = json.loads(payload)
        assert set(said) == KEPT
        assert said["topic"] == topic
        assert b"8541234567" not in payload
        far = wh.Geodesic()([[said["lon"], said["lat"]]], [[PHONE["lon"], PHONE["lat"]]])
        assert far[0] < 10_000
    ledger = open_ledger(tmp_path / "ledger.db")
    assert len(ledger.statement("ann/phone").entries) == 1
    assert len(ledger.statement("bob/tablet").entries) == 1
