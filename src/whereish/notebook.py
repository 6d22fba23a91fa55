"""What notebooks show: heat maps and small tables as HTML, without a plotting library.

A heat map is a PNG of at most 256 x 256 pixels inside the page; larger arrays are averaged
over blocks.  All words are escaped: a coordinate system or a file may bring its own.
"""

from __future__ import annotations

import base64
import html
import struct
import zlib
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from whereish.arrays import FloatArray
from whereish.errors import printable

__all__ = ["heat_map", "table"]

_SIDE = 256
_LIGHT, _DARK = np.array([247, 251, 255]), np.array([8, 48, 107])


def heat_map(values: FloatArray, caption: str) -> str:
    """A picture of a (rows, columns) array, its first row on top; the larger, the darker."""
    pixels = _averaged(_averaged(values).T).T
    low, high = float(pixels.min()), float(pixels.max())
    shade = (pixels - low) / (high - low) if high > low else np.zeros_like(pixels)
    image = base64.b64encode(_png(np.rint(255 * shade).astype(np.uint8))).decode()
    rows, columns = pixels.shape
    scale = max(1, _SIDE // max(rows, columns))
    words = _escaped(caption)
    return (
        f'<figure><img alt="{words}" width="{columns * scale}" height="{rows * scale}"'
        f' style="image-rendering: pixelated" src="data:image/png;base64,{image}">'
        f"<figcaption>{words}</figcaption></figure>"
    )


def table(entries: Mapping[str, str]) -> str:
    """A table of names and texts."""
    rows = "".join(
        f"<tr><th>{_escaped(name)}</th><td>{_escaped(text)}</td></tr>"
        for name, text in entries.items()
    )
    return f"<table>{rows}</table>"


def _escaped(text: str) -> str:
    return html.escape(printable(text))


def _averaged(values: FloatArray) -> FloatArray:
    """The array with at most 256 rows: means of blocks of rows."""
    count = len(values)
    if count <= _SIDE:
        return values
    starts = np.arange(_SIDE) * count // _SIDE
    sizes = np.diff(np.append(starts, count))
    return np.asarray(np.add.reduceat(values, starts, axis=0) / sizes[:, None])


def _png(shades: NDArray[np.uint8]) -> bytes:
    """A PNG of 8-bit shades, from light to dark."""
    rows, columns = shades.shape
    ramp = np.linspace(_LIGHT, _DARK, 256).round().astype(np.uint8)
    lines = np.insert(shades, 0, 0, axis=1)  # each line unfiltered
    header = struct.pack(">IIBBBBB", columns, rows, 8, 3, 0, 0, 0)
    parts = (
        (b"IHDR", header),
        (b"PLTE", ramp.tobytes()),
        (b"IDAT", zlib.compress(lines.tobytes())),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in parts
    )
