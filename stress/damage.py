"""Files that are damaged or not what they must be, of every kind that is read.

A refusal must be one sentence without a true coordinate, and leave no output, no charge
and no trace on the terminal or in the log.  Damage that leaves a file readable cannot be
told from other data: such a file is released, whole and charged.  It is counted whether it
still reads as what it was (the damage met nothing that is read) or as something else.  With
the SHA-256 of the whole file every damage must be refused.

``python -m stress.damage`` runs 200 of each damage for each kind; part of
``make stress``.  The tests run 200 of each damage over all kinds.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import shapely

import whereish as wh
from benchmarks.measure import Bars
from whereish.errors import InvalidInput
from whereish.publish.formats.tables import Wanted, open_table

EPS = "ln(4)/200 m"
ROWS = 300
EACH = 200
KINDS = (".csv", ".jsonl", ".parquet", ".geoparquet", ".gpkg", ".geojson", ".fgb", ".gpx")
TRUE_PLACE = re.compile(r"(?<!\d)(2\.[2-5]|48\.8)\d{2}")
COLUMNS = {"lon": "lon", "lat": "lat"}


def people(rows: int = ROWS) -> pd.DataFrame:
    generator = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "who": [f"p{i % 10}" for i in range(rows)],
            "lon": generator.uniform(2.2, 2.5, rows),
            "lat": generator.uniform(48.8, 48.9, rows),
            "speed": generator.uniform(0, 30, rows),
            "time": pd.date_range("2026-01-01", periods=rows, freq="7min", tz="UTC"),
        }
    )


def geo_people(rows: int = ROWS) -> gpd.GeoDataFrame:
    frame = people(rows)
    points = gpd.points_from_xy(frame.pop("lon"), frame.pop("lat"))
    return gpd.GeoDataFrame(frame, geometry=points, crs=4326)


def write(path: Path, rows: int = ROWS) -> dict[str, str]:
    """Write people as the kind that the path names; how to point at their locations."""
    return write_frames(path, people(rows), geo_people(rows))


def write_frames(path: Path, plain: pd.DataFrame, geo: gpd.GeoDataFrame) -> dict[str, str]:
    """Write the frame that the path's kind takes."""
    if {".csv", ".tsv"} & set(path.suffixes):
        plain.to_csv(path, index=False, sep="\t" if ".tsv" in path.suffixes else ",")
    elif path.suffix in (".jsonl", ".ndjson"):
        plain.to_json(path, orient="records", lines=True, date_format="iso")
    elif path.suffix == ".parquet":
        plain.to_parquet(path, index=False)
    elif path.suffix == ".geoparquet":
        geo.to_parquet(path, index=False)
        return {}
    elif path.suffix == ".gpx":
        geo[["time", "geometry"]].to_file(path, driver="GPX", layer="waypoints")
        # GDAL does not say the encoding; most writers do, and damage may meet its name.
        declared = b'<?xml version="1.0" encoding="UTF-8"?>'
        path.write_bytes(declared + path.read_bytes().partition(b"?>")[2])
        return {}
    elif path.suffix == ".fgb":
        geo.to_file(path, SPATIAL_INDEX="NO")  # an index would sort the rows
        return {}
    else:
        geo.to_file(path)
        return {}
    return COLUMNS


# Damage


def truncated(raw: bytes, generator: np.random.Generator) -> bytes:
    return raw[: int(generator.integers(0, len(raw)))]


def flipped(raw: bytes, generator: np.random.Generator) -> bytes:
    """Twenty bits."""
    damaged = bytearray(raw)
    for at in generator.integers(0, len(raw), 20):
        damaged[at] ^= 1 << int(generator.integers(0, 8))
    return bytes(damaged)


def scrambled(raw: bytes, generator: np.random.Generator) -> bytes:
    """Up to 400 bytes of something else."""
    damaged = bytearray(raw)
    at = int(generator.integers(0, len(raw)))
    size = min(len(raw) - at, int(generator.integers(1, 400)))
    damaged[at : at + size] = generator.bytes(size)
    return bytes(damaged)


DAMAGES = (truncated, flipped, scrambled)


def sanitised(source: Path, plan: dict[str, Any], ledger: wh.Ledger) -> bool:
    """Whether a file was released; asserts all that must hold if it was refused."""
    output = source.with_name("out.parquet")
    charged = {} if source.suffix == ".gpx" else {"ledger": ledger, "subject": "who"}
    before, beside = total(ledger), set(source.parent.iterdir())
    release = error = None
    try:
        release = wh.sanitize(source, output, epsilon=EPS, **plan, **charged)
    except InvalidInput as refusal:
        error = refusal
    if error is None:
        assert release is not None
        assert len(pq.read_table(output)) == release.rows, "a released file is not whole"
        assert total(ledger) == before + release.rows * bool(charged), "rows are not charged"
        output.unlink()
        return True
    assert not TRUE_PLACE.search(str(error)), "the sentence quotes a place"
    assert "\n" not in str(error), "more than one line"
    assert error.__suppress_context__ or error.__context__ is None, "the cause is quoted"
    assert total(ledger) == before, "charged without a release"
    assert set(source.parent.iterdir()) == beside, "something was left behind"
    return False


def read(source: Path, plan: dict[str, str]) -> pa.Table:
    """Subjects and places, as the reader sees them."""
    who = () if source.suffix == ".gpx" else ("who",)
    at = tuple(plan.values()) or ("geometry",)
    wanted = Wanted((*who, *at), tuple(plan.values()), () if plan else at)
    with open_table(source, wanted) as table:
        return pa.Table.from_batches(table.batches).select([*who, *at])


def total(ledger: wh.Ledger) -> int:
    """All reports that were charged, also to subjects whose names a flipped bit changed."""
    with ledger._database.transaction(writing=False) as run:
        return int(run.rows("SELECT COALESCE(SUM(times), 0) FROM whereish_entries")[0][0])


# Whole files that are not what they must be


def misfits(folder: Path) -> Iterator[tuple[str, Path, dict[str, Any]]]:
    """(what is wrong, the file, how to read it), for every kind that can be wrong so."""
    plain, geo = people(30), geo_people(30)
    metres = geo.to_crs(2154)
    in_metres = plain.assign(lon=metres.geometry.x, lat=metres.geometry.y)
    mixed = geo.copy()
    mixed.loc[7, "geometry"] = shapely.box(2.3, 48.81, 2.4, 48.82)
    words = plain.assign(lon=[*plain["lon"].astype(str)[:-1], "east"])
    for kind in KINDS:
        path = folder / f"in{kind}"
        if kind == ".gpx":
            yield from _misfit_gpx(path)
            continue
        yield "wrong CRS", path, write_frames(path, in_metres, metres)
        path.unlink(missing_ok=True)
        yield "mixed types", path, write_frames(path, words, mixed)
        path.unlink(missing_ok=True)
        yield "0 rows", path, write_frames(path, plain[:0], geo[:0])
        path.unlink(missing_ok=True)
        if kind in (".csv", ".jsonl"):
            path.write_text(
                "who,lon,lat,lat\np1,2.31234,48.85432,48.85432\n"
                if kind == ".csv"
                else '{"who": "p1", "lon": 2.31234, "lat": 48.85432, "lat": 48.81234}\n'
            )
            yield "two columns of one name", path, COLUMNS
        elif kind == ".geojson":
            plan = write_frames(path, plain, geo)
            path.write_text(path.read_text().replace('"who":', '"who": "p0", "who":', 1))
            yield "two columns of one name", path, plan
        elif kind in (".parquet", ".geoparquet"):
            plan = write_frames(path, plain, geo)
            table = pq.read_table(path)
            pq.write_table(table.append_column("who", pa.array(["x"] * len(table))), path)
            yield "two columns of one name", path, plan


def _misfit_gpx(path: Path) -> Iterator[tuple[str, Path, dict[str, Any]]]:
    sound = '<wpt lat="48.85432" lon="2.31234"/>'
    for what, points in (
        ("wrong CRS", '<wpt lat="6861234.5" lon="652123.4"/>'),
        ("mixed types", '<wpt lat="48.85432" lon="2.31234"/><wpt lat="north" lon="2.31234"/>'),
        ("0 rows", ""),
        ("rows that GDAL does not reach", f"{sound}<!-- {'x' * 200_000} -->{sound}"),
    ):
        head = '<gpx version="1.1" creator="t" xmlns="http://www.topografix.com/GPX/1/1">'
        path.write_text(f"{head}{points}</gpx>")
        yield what, path, {}


# All of it


@contextlib.contextmanager
def overheard() -> Iterator[Callable[[], str]]:
    """What is written to the terminal by anybody in this process, and to the log."""
    sys.stdout.flush()
    with tempfile.TemporaryFile("w+") as heard:
        handler = logging.StreamHandler(heard)
        logging.getLogger().addHandler(handler)
        level = logging.getLogger().level
        logging.getLogger().setLevel(logging.DEBUG)
        kept = [os.dup(number) for number in (1, 2)]
        os.dup2(heard.fileno(), 1)
        os.dup2(heard.fileno(), 2)

        def said() -> str:
            sys.stdout.flush()
            heard.flush()
            heard.seek(0)
            return heard.read()

        try:
            yield said
        finally:
            for number, copy in zip((1, 2), kept, strict=True):
                os.dup2(copy, number)
                os.close(copy)
            logging.getLogger().removeHandler(handler)
            logging.getLogger().setLevel(level)


def main(each: int = EACH) -> list[str]:
    bars = Bars(f"damaged files, {each} of each damage and kind")
    generator = np.random.default_rng(11)
    counts: Counter[tuple[str, str, str]] = Counter()
    wrong: list[str] = []
    by_digest = 0
    wh.perturb([0.0], [0.0], epsilon=EPS)  # compile now: the compiler's log is full of numbers
    with tempfile.TemporaryDirectory() as name, overheard() as said:
        folder = Path(name) / "here"
        folder.mkdir()
        ledger = wh.open_ledger(Path(name) / "ledger.db", cap="1000/m")

        def tried(what: str, source: Path, plan: dict[str, Any], whole: pa.Table | None) -> None:
            try:
                outcome = "refused"
                if sanitised(source, plan, ledger):
                    outcome = "same" if read(source, plan).equals(whole) else "other"
                counts[source.suffix, what, outcome] += 1
            except AssertionError as error:
                wrong.append(f"{source.suffix}, {what}: {error}")
            for path in folder.iterdir():
                path.unlink()

        for kind in KINDS:
            source = folder / f"in{kind}"
            plan = write(source, 60)
            raw, whole = source.read_bytes(), read(source, plan)
            known = {**plan, "sha256": hashlib.sha256(raw).hexdigest()}
            by_digest += not sanitised(source, known, ledger)
            for damage in DAMAGES:
                for _ in range(each):
                    source.write_bytes(damage(raw, generator))
                    by_digest += sanitised(source, known, ledger)
                    tried(damage.__name__, source, plan, whole)
        for what, source, plan in misfits(folder):
            tried(what, source, plan, None)
        heard = said()
    for kind in KINDS:
        for damage in DAMAGES:
            refused, same, other = (
                counts[kind, damage.__name__, end] for end in ("refused", "same", "other")
            )
            told = f"{refused} refused; readable as before {same}, as other data {other}"
            bars.note(f"{kind} {damage.__name__}", told)
    for what in (
        "wrong CRS",
        "mixed types",
        "0 rows",
        "two columns of one name",
        "rows that GDAL does not reach",
    ):
        refused = sum(counts[kind, what, "refused"] for kind in KINDS)
        released = sum(counts[kind, what, end] for kind in KINDS for end in ("same", "other"))
        bars.at_most(f"{what}: released, of {refused + released} kinds", released, 0, "")
    bars.at_most("with the file's SHA-256: damaged released, or whole refused", by_digest, 0, "")
    for line in wrong:
        bars.note("broken", line)
    bars.at_most("broken promises", len(wrong), 0, "")
    bars.at_most("true places on the terminal or in the log", len(TRUE_PLACE.findall(heard)), 0, "")
    return bars.failed


if __name__ == "__main__":
    sys.exit(1 if main(*map(int, sys.argv[1:])) else 0)
