"""What the service is told, and what it refuses to start with."""

from __future__ import annotations

import pytest

import whereish as wh
from whereish.errors import InvalidInput, NotPrivate
from whereish.interfaces.http.problems import Problem
from whereish.interfaces.http.requests import is_loopback
from whereish.interfaces.service.config import MechanismConfig, load_config
from whereish.interfaces.service.layers import Rates
from whereish.interfaces.service.offered import offer
from whereish.interfaces.service.places import open_source
from whereish.interfaces.service.tokens import TokenFile, secret_key
from whereish.lbs.sources.source import Source

GOOD = """
[ledger]
cap = "0.1/m"
[[mechanism]]
id = "street"
epsilon = "ln(4)/200 m"
"""


def config(tmp_path, text, **environment):
    path = tmp_path / "service.toml"
    path.write_text(text)
    return load_config(path, {f"WHEREISH_SERVE_{k}": v for k, v in environment.items()})


def test_a_file_and_the_environment(tmp_path):
    made = config(tmp_path, GOOD, PORT="8000", LEDGER__CAP="0.2/m", LIMITS__BATCH="7")
    assert (made.port, made.ledger.cap, made.limits.batch) == (8000, "0.2/m", 7)
    assert made.host == "127.0.0.1"
    assert made.auth


WRONG = [
    ("", "ledger"),
    (GOOD + "[limit]\nbatch = 3", "limit"),
    (GOOD + "epsilom = 3", "epsilom"),
    ("port = 99999\n" + GOOD, "port"),
    ("auth = false\nhost = '0.0.0.0'\n" + GOOD, "loopback"),
    ("auth = false\nhost = 'example.org'\n" + GOOD, "loopback"),
    ("uncharged = true\n" + GOOD, "uncharged"),
    ("uncharged = true\n", "at least one mechanism"),
    ("uncharged = true\n[[mechanism]]\nid = 'a'", "one of epsilon"),
    (GOOD + "mean_error = '300 m'", "one of epsilon"),
    (GOOD + "[[mechanism]]\nid = 'b'\nwithin = '1 km'\nfile = 'a.npz'", "one of epsilon"),
    (GOOD + "confidence = 0.9", "goes with within"),
    (GOOD + "[[mechanism]]\nid = 'b'\nwithin = '1 km'\nconfidence = 1.5", "confidence"),
    (GOOD + "[[mechanism]]\nid = 'street'\nepsilon = '1/m'", "street twice"),
    (GOOD + "[[mechanism]]\nid = '../a'\nepsilon = '1/m'", "mechanism"),
    ("uncharged = true\n[[mechanism]]\nid='a'\nepsilon='1/m'\n[[trace]]\nid='t'\naccuracy='1 m'\n"
     "total='1/m'", "traces need"),
    ("tls_key = 'k'\n" + GOOD, "together"),
    ("port = = 3", "not TOML"),
    ("places = 'a.db'\n" + GOOD + "[source]\nkind = 'store'\nfile = 'b.db'", "either places"),
    (GOOD + "[source]\nkind = 'telepathy'", "source"),
    (GOOD + "[source]\nkind = 'ogc'\nurl = 'https://a.example'", "collection"),
    (GOOD + "[source]\nkind = 'store'\nfile = 'b.db'\nurl = 'https://a.example'", "url"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), WRONG, ids=range(len(WRONG)))
def test_what_is_unknown_or_unsafe_is_refused(tmp_path, text, said):
    with pytest.raises(InvalidInput, match=said):
        config(tmp_path, text)


def test_an_unknown_variable_is_refused(tmp_path):
    with pytest.raises(InvalidInput):
        config(tmp_path, GOOD, PROT="8000")


def test_loopback():
    assert all(
        is_loopback(host) for host in ("127.0.0.1", "127.8.9.1", "::1", "[::1]", "localhost")
    )
    assert not any(is_loopback(h) for h in ("0.0.0.0", "::", "10.0.0.1", "localhost.evil.org", ""))


def test_levels_are_said_in_metres(tmp_path):
    metres = """
[[mechanism]]
id = "mean"
mean_error = "300 m"
[[mechanism]]
id = "radius"
within = "500 m"
confidence = 0.9
[[mechanism]]
id = "usual"
within = "500 m"
"""
    said = config(tmp_path, GOOD + metres).mechanism
    _, mean, radius, usual = (offer(one, tmp_path) for one in said)
    assert mean.mechanism.mean_error.m == pytest.approx(300, rel=1e-3)
    assert mean.epsilon.per_m == wh.GlobeLaplace.with_mean_error("300 m").epsilon.per_m
    assert radius.mechanism.quantile(0.9).m == pytest.approx(500, rel=1e-3)
    assert usual.mechanism.quantile(0.95).m == pytest.approx(500, rel=1e-3)
    assert usual.accuracy_m == pytest.approx(500, abs=1)
    assert radius.epsilon.per_m < usual.epsilon.per_m * 0.9


@pytest.mark.parametrize("said", [{"mean_error": "-3 m"}, {"within": "5"}, {"mean_error": "1/m"}])
def test_errors_that_are_no_lengths_are_refused(tmp_path, said):
    with pytest.raises(InvalidInput, match=r"mean_error|within"):
        offer(MechanismConfig("a", **said), tmp_path)


def test_files_are_verified_before_they_are_offered(tmp_path):
    plane = wh.Plane.around(2.35, 48.85, "5 km")
    places = wh.Points([[0, 0], [500, 0], [0, 500]], plane)
    channel = wh.tight_channel(places, "0.002/m")
    channel.save(tmp_path / "c.npz")
    offered = offer(MechanismConfig("c", file="c.npz"), tmp_path)
    assert offered.epsilon.per_m == pytest.approx(0.002, rel=1e-4)
    assert not offered.steady
    assert 500 <= offered.accuracy_m <= 708  # to another of the three places
    reports = offered.report([(2.35, 48.85)] * 20)
    degrees = {(round(x, 6), round(y, 6)) for x, y in zip(*plane.to_degrees(places), strict=True)}
    assert {(round(x, 6), round(y, 6)) for x, y in reports} <= degrees
    with pytest.raises(Problem):
        offered.report([(9.0, 48.85)])
    data = bytearray((tmp_path / "c.npz").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "c.npz").write_bytes(data)
    with pytest.raises((InvalidInput, NotPrivate)):
        offer(MechanismConfig("c", file="c.npz"), tmp_path)


def test_mechanisms_that_degrees_cannot_reach_are_refused(tmp_path):
    wh.tight_channel([[0, 0], [100, 0]], "0.01/m").save(tmp_path / "plain.npz")
    with pytest.raises(InvalidInput, match="degrees have no place"):
        offer(MechanismConfig("c", file="plain.npz"), tmp_path)


def test_tokens_are_found_by_id_and_hash(tmp_path):
    tokens = TokenFile(tmp_path / "deep" / "tokens.json")
    one, two = tokens.add("one", ("report:a", "budget")), tokens.add("two", subject="ann")
    fresh = TokenFile(tokens.path)
    found = fresh.find(one.encode())
    assert found.name == "one"
    assert found.allows("report", "a")
    assert not found.allows("report", "b")
    assert not found.allows("report")
    assert fresh.find(two.encode()).subject == "ann"
    swapped = one[:12] + two[12:]
    for wrong in (swapped, one[:-1], one + "a", "", "wh_", "wh__", one.upper(), one[3:], "\xff"):
        assert fresh.find(wrong.encode("latin-1")) is None
    assert one.split("_", 2)[2] not in tokens.path.read_text()  # which may have a "_" in it
    with pytest.raises(InvalidInput, match="already"):
        tokens.add("one")
    with pytest.raises(InvalidInput, match="scopes"):
        tokens.add("three", ("everything",))
    tokens.remove("one")
    with pytest.raises(InvalidInput, match="no token"):
        tokens.remove("one")


def test_tokens_are_compared_in_constant_time(tmp_path, monkeypatch):
    """Every way to an answer, known id or not, goes through one constant-time comparison."""
    import hmac

    tokens = TokenFile(tmp_path / "tokens.json")
    token = tokens.add("one")
    compared: list[int] = []
    real = hmac.compare_digest

    def counting(a, b):
        compared.append(len(b))
        return real(a, b)

    monkeypatch.setattr(hmac, "compare_digest", counting)
    for given in (token, token + "x", "wh_ffffffff_secret", "nothing"):
        tokens.find(given.encode())
    assert compared == [64] * 4


def test_the_key_is_made_once(tmp_path):
    assert secret_key(tmp_path) == secret_key(tmp_path)
    assert len(secret_key(tmp_path)) == 32
    assert (tmp_path / "hash.key").stat().st_mode & 0o077 == 0
    assert [path.name for path in tmp_path.iterdir()] == ["hash.key"]


def test_rates_refill():
    now = [0.0]
    rates = Rates(2.0, 3, clock=lambda: now[0])
    for _ in range(3):
        rates.take("a")
    with pytest.raises(Problem) as refused:
        rates.take("a")
    assert 0 < refused.value.retry_after_s <= 0.5
    rates.take("b")
    now[0] += 0.5
    rates.take("a")
    with pytest.raises(Problem):
        rates.take("a")


SOURCES = {
    "ogc": 'url = "https://a.example"\ncollection = "cafes"\nkeep = ["name"]',
    "overpass": "url = 'https://a.example'\nwhat = 'nwr[\"amenity\"]'",
    "json": "url = 'https://a.example'\nbody = {at = '{lon} {lat}', r = '{radius_m}'}",
    "postgis": "address = 'postgresql:///places'\ntable = 'public.cafes'",
}


@pytest.mark.parametrize("kind", sorted(SOURCES))
def test_every_kind_of_source_can_be_configured(tmp_path, kind):
    made = config(tmp_path, GOOD + f"[source]\nkind = '{kind}'\n{SOURCES[kind]}")
    source = open_source(made.places, made.source, tmp_path)
    assert isinstance(source, Source)
    assert "cafes" not in repr(source)
    source.close()


def test_a_state_folder_that_cannot_be_made_is_refused_in_a_sentence(monkeypatch):
    from whereish.errors import NotWritten
    from whereish.interfaces.cli import cli

    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nowhere")
    with pytest.raises(NotWritten, match="the service's state cannot be made: name one"):
        cli(["serve", "--mean-error", "300 m", "--cap", "10 x 300 m"], standalone_mode=False)
