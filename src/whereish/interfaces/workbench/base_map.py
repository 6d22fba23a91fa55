"""The files of the page and the base map, from the package; nothing is fetched from elsewhere."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from whereish.interfaces.http.problems import Problem
from whereish.interfaces.workbench.bench import Bench

__all__ = ["routes"]

_TYPES: Final = {
    "index.html": "text/html; charset=utf-8",
    "app.js": "text/javascript; charset=utf-8",
    "app.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "LICENSES.txt": "text/plain; charset=utf-8",
}
"""All that is served from the folder: names are looked up here, never joined to a path."""
_RANGE: Final = re.compile(r"bytes=(\d{1,12})-(\d{1,12})")
_MOST: Final = 4 << 20


@lru_cache(maxsize=8)
def page_file(name: str) -> bytes:
    """A file of the page, read once."""
    return (files("whereish.interfaces.workbench") / "page" / name).read_bytes()


def routes(bench: Bench) -> list[Route]:
    """The page, its files, and the base map by ranges."""

    async def page(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in _TYPES:
            raise Problem("not-found")
        return Response(
            page_file(name), headers={"cache-control": "no-cache"}, media_type=_TYPES[name]
        )

    async def world(request: Request) -> Response:
        return _range(request, page_file("world.pmtiles"))

    async def city(request: Request) -> Response:
        if bench.base_map is None:
            raise Problem("not-found")
        return _range(request, bench.base_map)

    return [
        Route("/", page),
        Route("/world.pmtiles", world),
        Route("/city.pmtiles", city),
        Route("/{name}", page),
    ]


def _range(request: Request, source: bytes | Path) -> Response:
    """The bytes that were asked for; a whole file is sent only if it is small."""
    size = len(source) if isinstance(source, bytes) else source.stat().st_size
    asked = _RANGE.fullmatch(request.headers.get("range", ""))
    if asked is None:
        raise Problem("bad-request", "the base map is read by ranges of bytes")
    first, last = int(asked[1]), min(int(asked[2]), size - 1)
    if first > last or last - first >= _MOST:
        raise Problem("bad-request", "the range is not one of the file")
    if isinstance(source, bytes):
        content = source[first : last + 1]
    else:
        with source.open("rb") as file:
            file.seek(first)
            content = file.read(last + 1 - first)
    headers = {
        "content-range": f"bytes {first}-{last}/{size}",
        "accept-ranges": "bytes",
        "cache-control": "no-cache",
    }
    return Response(content, 206, headers, media_type="application/octet-stream")
