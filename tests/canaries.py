"""Secrets planted wherever an input can hide one, and the search for them in what is released."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import sqlite3
import struct
from pathlib import Path
from typing import Any

import duckdb
import geopandas as gpd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyproj
import shapely

ROWS = 12
WORD = "canary"
"""Every planted text holds this word and where it was planted; no released value does."""

_GENERATOR = np.random.default_rng(11)
# The sixth decimal is 3 and more follow: a report has five, however it is printed.
LON, LAT, HEIGHT = (
    np.round(_GENERATOR.uniform(low, high, ROWS), 5) + 3.123456e-6
    for low, high in ((2.2, 2.5), (48.8, 48.9), (11, 99))
)
NAMES = [None if i % 5 == 2 else f"p{i}" for i in range(ROWS)]
"""The kept column; what is under its nulls is planted."""


def _forms(number: float) -> dict[str, bytes]:
    """How a number may stand in a file."""
    return {
        "double": struct.pack("<d", number),
        "big-endian double": struct.pack(">d", number),
        "float": struct.pack("<f", number),
        "text": f"{number:.9f}"[:-3].encode(),
    }


NEEDLES = {
    f"{axis} of row {row} as {form}": raw
    for axis, values in (("longitude", LON), ("latitude", LAT), ("height", HEIGHT))
    for row, number in enumerate(values.tolist())
    for form, raw in _forms(number).items()
}


def found(raw: bytes) -> list[str]:
    """Which secrets are in bytes: planted text with what follows it, and true numbers."""
    parts = raw.lower().split(WORD.encode())[1:]
    words = {f"{WORD}{part[:24]!r}" for part in parts}
    return sorted(words) + [what for what, needle in NEEDLES.items() if needle in raw]


# Inputs


def crs_with_canaries() -> pyproj.CRS:
    """WGS84, with text of its owner and the box of a street."""
    described = pyproj.CRS.from_epsg(4326).to_json_dict()
    del described["id"]
    described |= {
        "name": f"{WORD} crs name",
        "remarks": f"{WORD} crs remarks",
        "scope": f"{WORD} crs scope",
        "area": f"{WORD} crs area",
        "bbox": {
            "south_latitude": float(LAT.min()),
            "west_longitude": float(LON.min()),
            "north_latitude": float(LAT.max()),
            "east_longitude": float(LON.max()),
        },
    }
    return pyproj.CRS.from_json_dict(described)


def plain() -> pd.DataFrame:
    """The released rows with secrets beside them; `name` is what will be kept."""
    return pd.DataFrame(
        {
            "lon": LON,
            "lat": LAT,
            "name": NAMES,
            "ele": HEIGHT,
            "note": f"{WORD} dropped column",
            f"{WORD} column name": 1,
        }
    )


def longer() -> pd.DataFrame:
    """Rows that are not released stand before and behind."""
    outside = plain().assign(name=f"{WORD} outside", lon=LON[::-1], lat=LAT[::-1])
    return pd.concat([outside, plain(), outside], ignore_index=True)


def geographic() -> gpd.GeoDataFrame:
    """Points with a height, in a system with text."""
    frame = plain()
    points = shapely.points(frame.pop("lon"), frame.pop("lat"), HEIGHT)
    return gpd.GeoDataFrame(frame, geometry=points, crs=crs_with_canaries())


def covered(values: list[str | None]) -> pa.Array:
    """A text column with a secret under each null."""
    filled = pa.array([f"{WORD} under null" if one is None else one for one in values])
    valid = np.array([one is not None for one in values])
    bits = pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
    return pa.Array.from_buffers(pa.string(), len(filled), [bits, *filled.buffers()[1:]])


def arrow_table() -> pa.Table:
    """A slice of a table with metadata, and kept columns that refer to unreleased values."""
    frame = longer()
    names = covered(frame["name"].tolist())
    encoded = pa.DictionaryArray.from_arrays(
        pa.array(np.arange(len(frame)) % 2, pa.int8()), pa.array(["x", "y", f"{WORD} category"])
    )
    pairs = pa.FixedSizeListArray.from_arrays(pa.concat_arrays([encoded, encoded]), 2)
    table = pa.table(
        {
            "lon": frame["lon"],
            "lat": frame["lat"],
            "name": names,
            "category": encoded,
            "pairs": pairs,
            "lists": pa.ListArray.from_arrays(np.arange(len(frame) + 1), encoded),
            "inner": pa.StructArray.from_arrays([names, encoded], ["name", "category"]),
            "note": frame["note"],
        }
    )
    fields = [one.with_metadata({"k": f"{WORD} field metadata"}) for one in table.schema]
    schema = pa.schema(fields, {"k": f"{WORD} schema metadata"})
    return table.cast(schema).slice(ROWS, ROWS)


KEPT = ["name", "category", "pairs", "lists", "inner"]


def pandas_frame() -> pd.DataFrame:
    """A window of a longer frame; an index, names, attributes, categories."""
    frame = longer()
    kinds = pd.CategoricalDtype(["x", "y", f"{WORD} category"])
    frame["category"] = pd.Series(np.where(frame.index % 2, "x", "y")).astype(kinds)
    frame["pairs"] = [[1.0, 2.0] if i % 3 else None for i in range(len(frame))]
    frame.index = pd.Index([f"{WORD} index {i}" for i in frame.index], name=f"{WORD} index name")
    frame.columns.name = f"{WORD} name of columns"
    window = frame.iloc[ROWS : 2 * ROWS]
    window.attrs["k"] = f"{WORD} attribute"
    return window


def geopandas_frame() -> gpd.GeoDataFrame:
    """Points with a height, another geometry, and a system with text."""
    frame = geographic().assign(home=gpd.points_from_xy(LON, LAT))
    frame.index = pd.Index([f"{WORD} index {i}" for i in range(ROWS)], name=f"{WORD} index name")
    frame.attrs["k"] = f"{WORD} attribute"
    return frame


def polars_frame() -> pl.DataFrame:
    frame = pl.from_pandas(longer())
    kinds = pl.Enum(["x", "y", f"{WORD} category"])
    return frame.with_columns(category=pl.lit("x").cast(kinds)).slice(ROWS, ROWS)


def duckdb_relation() -> duckdb.DuckDBPyRelation:
    """Columns that DuckDB knows, of a table with unreleased values."""
    table = arrow_table().select(["lon", "lat", "name", "category", "lists", "note"])
    return duckdb.from_arrow(table)


FRAMES = {
    "pandas": (pandas_frame, ["name", "category", "pairs"]),
    "geopandas": (geopandas_frame, ["name"]),
    "polars": (polars_frame, ["name", "category"]),
    "arrow": (arrow_table, KEPT),
    "batch": (lambda: arrow_table().combine_chunks().to_batches()[0], KEPT),
    "duckdb": (duckdb_relation, ["name", "category", "lists"]),
}
"""Each kind of frame, and the columns of it that are kept."""


def write(path: Path) -> dict[str, str]:
    """An input file of the path's kind, with secrets; how to point at its locations."""
    text = {".csv", ".tsv"} & set(path.suffixes)
    return (_csv if text else _WRITERS[path.suffix])(path) or {}


def _csv(path: Path) -> dict[str, str]:
    plain().to_csv(path, index=False, sep="\t" if ".tsv" in path.suffixes else ",")
    return {"lon": "lon", "lat": "lat"}


def _json_lines(path: Path) -> dict[str, str]:
    rows = plain().to_dict("records")
    for row in rows:
        row["member"] = {"k": f"{WORD} member", "at": [row["lon"], row["lat"]]}
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {"lon": "lon", "lat": "lat"}


def _parquet(path: Path) -> dict[str, str]:
    pq.write_table(arrow_table(), path, compression="none", use_dictionary=False)
    return {"lon": "lon", "lat": "lat"}


def _geoparquet(path: Path) -> None:
    geographic().to_parquet(path, write_covering_bbox=True, schema_version="1.1.0")
    table = pq.read_table(path)
    metadata = dict(table.schema.metadata)
    described = json.loads(metadata[b"geo"])
    described["columns"]["geometry"]["k"] = f"{WORD} of geo metadata"
    metadata |= {b"geo": json.dumps(described).encode(), b"k": f"{WORD} file metadata".encode()}
    pq.write_table(table.replace_schema_metadata(metadata), path, compression="none")


def _geopackage(path: Path) -> None:
    said = {"k": f"{WORD} of metadata"}
    geographic().to_file(path, layer=f"{WORD} layer", dataset_metadata=said, layer_metadata=said)
    with sqlite3.connect(path) as file:
        file.execute("UPDATE gpkg_contents SET description = ?", [f"{WORD} description"])
        # GDAL itself writes a system that it knows by its number.
        system = crs_with_canaries().to_wkt("WKT1_GDAL")
        file.execute(
            "INSERT INTO gpkg_spatial_ref_sys (srs_name, srs_id, organization,"
            " organization_coordsys_id, definition, description) VALUES (?, ?, ?, ?, ?, ?)",
            [f"{WORD} srs", 100001, "NONE", 100001, system, f"{WORD} of srs"],
        )
        file.execute("UPDATE gpkg_contents SET srs_id = 100001")
        file.execute("UPDATE gpkg_geometry_columns SET srs_id = 100001")
    file.close()


def _flatgeobuf(path: Path) -> None:
    stated = {"TITLE": f"{WORD} title", "DESCRIPTION": f"{WORD} description"}
    geographic().to_file(path, layer=f"{WORD} layer", SPATIAL_INDEX="NO", **stated)


def _geojson(path: Path) -> None:
    features = [
        {
            "type": "Feature",
            "id": f"{WORD} id {i}",
            "k": f"{WORD} foreign member of a feature",
            "bbox": [LON[i], LAT[i], LON[i], LAT[i]],
            "geometry": {"type": "Point", "coordinates": [LON[i], LAT[i], HEIGHT[i]]},
            "properties": {"name": NAMES[i], "note": f"{WORD} property"},
        }
        for i in range(ROWS)
    ]
    whole = {
        "type": "FeatureCollection",
        "name": f"{WORD} collection",
        "k": {"k": f"{WORD} foreign member"},
        "bbox": [LON.min(), LAT.min(), LON.max(), LAT.max()],
        "features": features,
    }
    path.write_text(json.dumps(whole))


def _gpx(path: Path) -> None:
    def point(i: int) -> str:
        name = "" if NAMES[i] is None else f"<name>{NAMES[i]}</name>"
        said = f"<cmt>{WORD} comment</cmt><extensions><k>{WORD} extension</k></extensions>"
        return f'<trkpt lat="{LAT[i]}" lon="{LON[i]}"><ele>{HEIGHT[i]}</ele>{name}{said}</trkpt>'

    box = f'minlat="{LAT.min()}" minlon="{LON.min()}" maxlat="{LAT.max()}" maxlon="{LON.max()}"'
    path.write_text(
        f'<?xml version="1.0"?><!-- {WORD} xml comment -->'
        f'<gpx version="1.1" creator="{WORD} creator" xmlns="http://www.topografix.com/GPX/1/1">'
        f"<metadata><name>{WORD} metadata name</name><bounds {box}/></metadata>"
        f"<trk><name>{WORD} track</name><trkseg>{''.join(map(point, range(ROWS)))}</trkseg></trk>"
        "</gpx>"
    )


_WRITERS = {
    ".csv": _csv,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".parquet": _parquet,
    ".geoparquet": _geoparquet,
    ".gpkg": _geopackage,
    ".geojson": _geojson,
    ".fgb": _flatgeobuf,
    ".gpx": _gpx,
}


# Containers: all that their holder can read, without compression


def bytes_of(path: Path) -> bytes:
    """A file as it is; of Parquet also the values that its pages encode, and its metadata."""
    raw = path.read_bytes()
    if path.suffix == ".gz":
        raw += gzip.decompress(raw)
    if path.suffix in (".parquet", ".geoparquet"):
        with pq.ParquetFile(path) as file:
            raw += bytes_of_arrow(file.read())
            raw += str(file.metadata.to_dict()).encode() + str(file.metadata.metadata).encode()
    return raw


def bytes_of_arrow(table: pa.Table | pa.RecordBatch) -> bytes:
    """Every buffer whole, dictionaries too, besides a pickle and the interchange format."""
    parts = [pickle.dumps(table), table.schema.serialize().to_pybytes()]
    for batch in table.to_batches() if isinstance(table, pa.Table) else [table]:
        parts += [part for column in batch.columns for part in _buffers(column)]
        sink = io.BytesIO()
        with pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)
        parts.append(sink.getvalue())
    return b"".join(parts)


def _buffers(array: Any) -> list[bytes]:
    parts = [buffer.to_pybytes() for buffer in array.buffers() if buffer is not None]
    if isinstance(array, pa.DictionaryArray):
        parts += _buffers(array.dictionary)
    elif isinstance(array, pa.StructArray):
        parts += [b for i in range(array.type.num_fields) for b in _buffers(array.field(i))]
    elif array.type.num_fields:
        parts += _buffers(array.values)
    return parts


def bytes_of_pandas(frame: pd.DataFrame) -> bytes:
    """A pickle, a CSV file with its index, and the arrays that the frame's are views of."""
    parts = [pickle.dumps(frame), frame.to_csv().encode(), str(frame.attrs).encode()]
    for name in frame.columns:
        values = frame[name].array
        root = getattr(values, "_ndarray", np.empty(0))
        while isinstance(root, np.ndarray):
            parts += [root.tobytes() if root.dtype != object else str(root.tolist()).encode()]
            root = root.base
        if isinstance(root, pa.Buffer):
            parts.append(root.to_pybytes())
    if isinstance(frame, gpd.GeoDataFrame):
        parts += [frame.crs.to_json().encode(), frame.crs.to_wkt().encode()]
        sink = io.BytesIO()
        frame.to_parquet(sink, compression=None)
        parts += [sink.getvalue(), bytes_of_arrow(pa.table(frame.to_arrow()))]
    else:
        parts.append(bytes_of_arrow(pa.Table.from_pandas(frame)))
    return b"".join(parts)


def bytes_of_frame(frame: Any) -> bytes:
    """What the holder of a frame of any kind can read."""
    if isinstance(frame, pd.DataFrame):
        return bytes_of_pandas(frame)
    if isinstance(frame, pl.DataFrame):
        sink = io.BytesIO()
        frame.write_ipc(sink, compression="uncompressed")
        arrow = bytes_of_arrow(frame.to_arrow())
        return pickle.dumps(frame) + sink.getvalue() + arrow
    if isinstance(frame, duckdb.DuckDBPyRelation):
        return bytes_of_arrow(frame.to_arrow_table())
    return bytes_of_arrow(frame)
