"""What is typed, and what is answered: mistakes.txt beside this file has both.

A line that begins with $ is typed at the command line, with >>> in Python; what follows, up to
an empty line, is the answer, where ... stands for a list that grows.  A command's answer is one
sentence on standard error, with exit code 2; an error's begins with its type.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import pytest

TABLE = Path(__file__).with_name("mistakes.txt")


def zones(kind: str, **properties: object) -> str:
    """GeoJSON with one zone."""
    ring = [[2.3, 48.8], [2.4, 48.8], [2.4, 48.9], [2.3, 48.8]]
    shape = {"type": kind, "coordinates": [ring] if kind == "Polygon" else ring[0]}
    zone = {"type": "Feature", "properties": properties, "geometry": shape}
    return json.dumps({"type": "FeatureCollection", "features": [zone]})


FILES = {
    "trips.csv": "lon,lat,who,time\n2.35,48.85,a,2026-01-31T08:15\n2.36,48.86,b,2026-01-31T09:15\n",
    "words.csv": "lon,lat\n2.35,48.85\n2.36,abc\n",
    "empty.csv": "",
    "head.csv": "lon,lat\n",
    "no_header.csv": "2.35,48.85\n2.36,48.86\n",
    "swapped.csv": "lon,lat\n2.35,48.85\n48.86,102.36\n",
    "missing.csv": "lon,lat\n2.35,48.85\n,48.8\n",
    "turned.csv": "lon,lat\n182.35,48.85\n",
    "sites.csv": "lon,lat,prior\n2.35,48.85,0.5\n2.36,48.86,0.499997\n",
    "plane.csv": "x,y,prior\n0,0,1\n100,0,1\n0,100,2\n",
    "degrees.csv": "x,y\n2.35,48.85\n2.36,48.86\n",
    "damaged.shp": "not a shapefile",
    "notes.txt": "hi",
    "no_map.npz": "hi",
    "there.csv": "precious",
    "there.npz": "precious",
    "quote.csv": 'lon,lat,who\n2.35,48.85,"a\n2.36,48.86,b\n',
    "twice.csv": "lon,lat,lon\n2.35,48.85,1\n",
    "nan.csv": "lon,lat\n2.35,48.85\nNaN,48.86\n",
    "infinite.csv": "lon,lat\n2.35,48.85\ninf,48.86\n",
    "ragged.csv": "lon,lat,who\n2.35,48.85\n2.36,48.86,c,d\n",
    "metres.csv": "x,y\n261845.7,6250566.7\n261900.1,6250600.2\n",
    "minutes.csv": "lon,lat\n2°21'E,48°51'N\n",
    "e7.csv": "longitudeE7,latitudeE7\n23522000,488566000\n",
    "list.json": '[{"lat": 48.85, "lon": 2.35}]',
    "book.xlsx": "PK",
    "broken.geojson": '{"type": "Feature"',
    "areas.geojson": zones("Polygon"),
    "levels.geojson": zones("Polygon", level=3),
    "metre.geojson": zones("Polygon", mean_error="600"),
    "both.geojson": zones("Polygon", mean_error="600 m", epsilon="1/km"),
    "points.geojson": zones("Point", epsilon="1/km"),
    "text.parquet": "lon,lat\n2.35,48.85\n",
    "broken.gpx": "<gpx><trk>",
    "packed.csv.gz": "not packed",
    "negative.csv": "lon,lat,prior\n2.35,48.85,-0.5\n2.36,48.86,1.5\n",
    "nobody.csv": "lon,lat,prior\n2.35,48.85,0\n2.36,48.86,0\n",
    "broken.toml": "[ledger\n",
    "bare.toml": "",
    "folder.csv/notes.txt": "",
    "empty_folder/.keep": "",
}


def read_table() -> list[tuple[str, str]]:
    """(what is typed, the answer as one line) for each mistake."""
    entries = [part.strip() for part in TABLE.read_text(encoding="utf-8").split("\n\n")]
    pairs = [entry.partition("\n") for entry in entries if entry[:1] in "$>"]
    return [(typed, " ".join(answer.split())) for typed, _, answer in pairs]


def answered(typed: str) -> str:
    """The answer of today, in a folder with some files."""
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, text in FILES.items():
            path = Path(name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        before = sorted(path.name for path in Path().iterdir())
        said = _command(typed[2:]) if typed.startswith("$ ") else _python(typed[4:])
        left = [path.name for path in Path().iterdir() if path.name not in before]
        assert left == [], f"a mistake must leave nothing behind: {left}"
    return said


def _command(line: str) -> str:
    from whereish.interfaces.cli import main

    words, _, given = f"{line} ".partition(" <<< ")
    argv = shlex.split(words)
    out, err = io.StringIO(), io.StringIO()
    stdin = io.TextIOWrapper(io.BytesIO(given.replace("\\n", "\n").encode()))
    with (
        mock.patch.object(sys, "argv", argv),
        mock.patch.object(sys, "stdin", stdin),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    assert ended.value.code == 2
    return " ".join(err.getvalue().split())


def _python(expression: str) -> str:
    import numpy as np
    import pyarrow as pa

    import whereish as wh

    table = pa.table({"lon": [2.35, 2.36], "lat": [48.85, 48.86], "who": ["a", "b"]})
    names = {"wh": wh, "np": np, "pa": pa, "table": table}
    try:
        got = eval(expression, names)
    except Exception as error:
        return " ".join(f"{type(error).__name__}: {error}".split())
    raise AssertionError(f"this is no mistake, it gives {type(got).__name__}")


@pytest.mark.parametrize(("typed", "answer"), read_table(), ids=[t for t, _ in read_table()])
def test_what_is_typed_is_answered(typed, answer):
    pattern = ".*".join(map(re.escape, answer.split("...")))
    assert re.fullmatch(pattern, answered(typed)), answered(typed)


def test_there_are_enough_of_them_and_no_answer_quotes_a_place():
    table = read_table()
    assert len(table) >= 280  # some 25 that newcomers met, and more than 250 others
    assert len({typed for typed, _ in table}) == len(table)
    for _, answer in table:
        assert not re.search(r"48[.,]8[56]|2[.,]3[0-9]", answer), answer
        assert "internal error" not in answer
        assert "Traceback" not in answer
        assert "None/m" not in answer
