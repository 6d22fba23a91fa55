"""One way to read every saved mechanism, and no work done twice on that way."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import whereish as wh
from whereish.errors import InvalidInput, NotPrivate
from whereish.interfaces.cli.audit import command as audit
from whereish.interfaces.cli.report import command as report
from whereish.mechanisms import saved as saved_files
from whereish.mechanisms.channels import channel as channels
from whereish.mechanisms.maps import file as law_file
from whereish.mechanisms.maps import table_file
from whereish.mechanisms.saved import (
    Artefact,
    load_artefact,
    save_artefact,
    saved_as,
    space_from_json,
)
from whereish.privacy.maps import privacy_map as maps
from whereish.solvers.geodesic.graph_metric import GraphMetric

FILES = Path(__file__).parents[1] / "recorded/files"
KINDS = {
    "optimal": wh.Channel,
    "map": wh.EikonalMechanism,
    "continuous": wh.EikonalMechanism,
    "query": wh.EikonalQuery,
}


@pytest.fixture
def counted(monkeypatch) -> Callable[[Any, str], list[int]]:
    """Puts a counter around the real function, and returns what it counts."""

    def put(owner: Any, name: str) -> list[int]:
        plain, calls = getattr(owner, name), []

        def count(*args: Any, **options: Any) -> Any:
            calls.append(1)
            return plain(*args, **options)

        monkeypatch.setattr(owner, name, count)
        return calls

    return put


@pytest.mark.parametrize("name", KINDS)
def test_load_reads_every_kind(name):
    mechanism = wh.load(FILES / f"{name}.npz")
    assert type(mechanism) is KINDS[name]
    same = KINDS[name].load(str(FILES / f"{name}.npz"))
    assert mechanism.guarantee.to_json() == same.guarantee.to_json()


@pytest.mark.parametrize("name", ["optimal", "map", "query"])
@pytest.mark.parametrize("reader", [wh.Channel, wh.EikonalMechanism, wh.EikonalQuery])
def test_a_class_refuses_files_of_another_kind(name, reader):
    path = FILES / f"{name}.npz"
    if reader is KINDS[name]:
        assert isinstance(reader.load(path), reader)
        return
    with pytest.raises(InvalidInput, match=rf"{name}\.npz' holds a mechanism of kind .*, not"):
        reader.load(path)


def test_load_of_a_channel_imports_no_map():
    code = f"""
import sys, whereish
whereish.load({str(FILES / "optimal.npz")!r})
print([name for name in sys.modules if name.startswith("whereish.mechanisms.maps")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@dataclass(frozen=True)
class Coin:
    """Reports the secret bit with probability weight / 4: keeps ln 3 if that is 3/4."""

    weight: int = 3

    def save(self, path: Path) -> None:
        save_artefact(path, "coin", {"weight": np.array(self.weight)}, {})

    @classmethod
    def from_artefact(cls, saved: Artefact) -> Coin:
        coin = cls(int(saved.arrays["weight"]))
        if coin.weight not in (1, 2, 3):
            raise NotPrivate("the weights need more than ln 3")
        return coin


def test_a_kind_of_a_stranger_is_one_declaration(tmp_path, monkeypatch):
    monkeypatch.setattr(saved_files, "_READERS", dict(saved_files._READERS))
    Coin(2).save(tmp_path / "coin.npz")
    with pytest.raises(InvalidInput, match="no class reads files of kind 'coin'"):
        wh.load(tmp_path / "coin.npz")
    assert saved_as("coin")(Coin) is Coin
    assert wh.load(tmp_path / "coin.npz") == Coin(2)
    Coin(4).save(tmp_path / "coin.npz")
    with pytest.raises(NotPrivate):
        wh.load(tmp_path / "coin.npz")
    saved_as("coin")(Coin)  # a module that is run again
    for kind in ("coin", "channel", "eikonal query"):
        with pytest.raises(InvalidInput, match="another reader"):
            saved_as(kind)(type("Other", (), {}))
    result = CliRunner().invoke(audit, [str(tmp_path / "coin.npz")])
    assert isinstance(result.exception, NotPrivate)
    Coin(1).save(tmp_path / "coin.npz")
    result = CliRunner().invoke(audit, [str(tmp_path / "coin.npz")])
    assert "the audit knows no mechanism of kind 'coin'" in str(result.exception)


def test_report_refuses_a_mechanism_that_reports_answers():
    options = ["--mechanism", str(FILES / "query.npz"), "--at", "0,0"]
    result = CliRunner().invoke(report, options)
    assert "reports answers, not places" in str(result.exception)


def test_a_space_of_another_kind_is_refused():
    with pytest.raises(InvalidInput, match="one of plane, sphere, line"):
        space_from_json({"kind": "torus", "crs": None, "region": None})


def test_the_audit_reads_hashes_and_verifies_a_channel_once(counted):
    hashed = counted(saved_files, "_digest")
    verified = counted(channels, "largest_ratio")
    result = CliRunner().invoke(audit, [str(FILES / "optimal.npz")])
    assert result.exit_code == 0
    assert (len(hashed), len(verified)) == (1, 1)


@pytest.mark.parametrize("name", ["map", "continuous", "query"])
def test_a_map_is_read_built_and_certified_once(name, counted, monkeypatch):
    def sha256(data: bytes) -> Any:
        described.append(1)
        return hashlib.sha256(data)

    described: list[int] = []
    monkeypatch.setattr(maps, "hashlib", SimpleNamespace(sha256=sha256))
    hashed = counted(saved_files, "_digest")
    built = counted(wh.PrivacyMap, "__post_init__")
    if name == "query":
        steps = [counted(table_file, "table_sums"), counted(table_file, "table_factors")]
    else:
        steps = [
            counted(wh.EikonalMechanism, "__post_init__"),
            counted(GraphMetric, "exact_sums"),
            counted(law_file, "edge_factors"),
        ]
    wh.load(FILES / f"{name}.npz")
    assert [len(calls) for calls in (hashed, built, described, *steps)] == [1] * (3 + len(steps))


def test_load_names_what_is_wrong_with_a_file(tmp_path):
    with pytest.raises(InvalidInput, match="there is no file"):
        wh.load(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("no mechanism")
    with pytest.raises(InvalidInput, match="not a mechanism saved by whereish"):
        wh.load(tmp_path / "text.npz")
    whole = (FILES / "optimal.npz").read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 3] ^= 0x55
    for contents, why in (
        (b"", "is empty"),
        (whole[:60], "is not complete"),
        (whole[: len(whole) // 2], "is not complete"),
        (bytes(flipped), "or damaged"),
    ):
        (tmp_path / "part.npz").write_bytes(contents)
        with pytest.raises(InvalidInput, match=f"part.npz' {why}|{why}.*build"):
            wh.load(tmp_path / "part.npz")
    saved = load_artefact(FILES / "optimal.npz")
    weights = saved.arrays["weights"].copy()
    weights[0, 0] -= 1 << 40
    weights[0, 1] += 1 << 40
    said = {k: v for k, v in saved.certificate.items() if k != "sha256"}
    for words in ("format", "kind", "whereish"):
        said.pop(words)
    path = tmp_path / "forged.npz"
    save_artefact(path, "channel", {**saved.arrays, "weights": np.roll(weights, 1, axis=0)}, said)
    with pytest.raises(NotPrivate):
        wh.load(path)
