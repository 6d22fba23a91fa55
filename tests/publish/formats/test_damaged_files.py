"""Damaged files: nothing is released, and nothing of them is told."""

from __future__ import annotations

import hashlib
import logging

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import whereish as wh
from stress.damage import (
    DAMAGES,
    EPS,
    TRUE_PLACE,
    misfits,
    people,
    sanitised,
    write,
)
from stress.damage import KINDS as KINDS_READ
from whereish.errors import InvalidInput
from whereish.publish.formats.tables import Wanted, open_table


@pytest.mark.parametrize("damage", DAMAGES)
def test_200_damaged_files(tmp_path, damage, caplog, capfd):
    """Refused in one sentence without a trace; or not to be told from whole, and charged."""
    caplog.set_level(logging.DEBUG)
    generator = np.random.default_rng(11)
    ledger = wh.open_ledger(tmp_path / "l.db", cap="1000/m")
    folder = tmp_path / "here"
    folder.mkdir()
    whole = {}
    for kind in KINDS_READ:
        plan = write(tmp_path / f"whole{kind}", 60)
        whole[kind] = (tmp_path / f"whole{kind}").read_bytes(), plan
    refusals = dict.fromkeys(KINDS_READ, 0)
    for number in range(200):
        kind = KINDS_READ[number % len(KINDS_READ)]
        raw, plan = whole[kind]
        source = folder / f"in{kind}"
        source.write_bytes(damage(raw, generator))
        known = {**plan, "sha256": hashlib.sha256(raw).hexdigest()}
        assert not sanitised(source, known, ledger), "the SHA-256 tells every damage"
        refusals[kind] += not sanitised(source, plan, ledger)
        source.unlink()
    logged = caplog.text + "".join(capfd.readouterr())
    assert not TRUE_PLACE.search(logged), logged[:500]
    assert refusals[".parquet"] >= 15
    assert refusals[".gpx"] >= 20
    assert refusals[".gpkg"] >= 10 or damage.__name__ != "truncated"


def test_the_digest_of_a_whole_file(tmp_path):
    source, output = tmp_path / "in.csv", tmp_path / "o.csv"
    plan = write(source, 30)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    release = wh.sanitize(source, output, epsilon=EPS, sha256=digest.upper(), **plan)
    assert release.rows == 30
    wrong = "0" * 64
    for asked, path, said in (
        (wrong, source, "not the file of this SHA-256"),
        (digest[:40], source, "64 hexadecimal digits"),
        (digest, tmp_path, "digits of one file"),
    ):
        with pytest.raises(InvalidInput, match=said):
            wh.sanitize(path, tmp_path / "new.csv", epsilon=EPS, sha256=asked, **plan)
    assert not (tmp_path / "new.csv").exists()
    with pytest.raises(InvalidInput, match="are for files"):
        wh.sanitize(people(3), epsilon=EPS, sha256=digest, **plan)


def test_whole_files_that_are_not_what_they_must_be(tmp_path, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    ledger = wh.open_ledger(tmp_path / "l.db", cap="1000/m")
    folder = tmp_path / "here"
    folder.mkdir()
    seen = []
    for what, source, plan in misfits(folder):
        assert not sanitised(source, plan, ledger), (what, source.suffix)
        seen.append(what)
        source.unlink()
    assert len(seen) == 30
    assert not TRUE_PLACE.search(caplog.text + "".join(capfd.readouterr()))


def test_a_bit_that_flips_in_a_page_with_a_checksum(tmp_path):
    """What we write has checksums, and no flipped page is read as something else."""
    source = tmp_path / "in.parquet"
    people(500).to_parquet(source)
    plan = {"lon": "lon", "lat": "lat", "epsilon": EPS}
    wh.sanitize(source, tmp_path / "whole.parquet", **plan)
    raw = bytearray((tmp_path / "whole.parquet").read_bytes())
    whole = pq.read_table(tmp_path / "whole.parquet")
    columns = [pq.read_metadata(tmp_path / "whole.parquet").row_group(0).column(i) for i in (0, 1)]
    generator = np.random.default_rng(7)
    refusals = 0
    for number in range(200):
        column = columns[number % 2]
        start = column.data_page_offset
        at = int(generator.integers(start, start + column.total_compressed_size))
        raw[at] ^= (bit := 1 << int(generator.integers(0, 8)))
        (tmp_path / "flipped.parquet").write_bytes(raw)
        raw[at] ^= bit
        try:
            with open_table(tmp_path / "flipped.parquet", Wanted(("lon", "lat"))) as table:
                read = pa.Table.from_batches(table.batches)
        except InvalidInput:
            refusals += 1
        else:
            assert read.select(["lon", "lat"]).equals(whole.select(["lon", "lat"]))
    assert refusals >= 190
