"""Local servers that speak the protocols of location services, written from their specifications.

They measure on other Earths than ours (a sphere of 6,371,008.8 m), and fail on demand.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import numpy as np

MEAN_EARTH_M = 6_371_008.8


def haversine_m(lon, lat, places):
    """Distances as most services compute them."""
    here, there = np.radians([lon, lat]), np.radians(places)
    half = np.sin((there[:, 1] - here[1]) / 2) ** 2
    half += np.cos(here[1]) * np.cos(there[:, 1]) * np.sin((there[:, 0] - here[0]) / 2) ** 2
    return 2 * MEAN_EARTH_M * np.arcsin(np.sqrt(np.minimum(half, 1)))


@dataclass
class Seen:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Service:
    """A running server: what it saw, and what it does before it answers well."""

    url: str
    seen: list[Seen] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


Answer = Callable[[Seen], object]


@contextlib.contextmanager
def serving(answer: Answer) -> Iterator[Service]:
    """Serve JSON answers on a port of this host."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            self._answer()

        def do_POST(self):
            self._answer()

        def _answer(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            seen = Seen(self.command, self.path, dict(self.headers.items()), body)
            service.seen.append(seen)
            fault = service.faults.pop(0) if service.faults else ""
            if fault == "drop":
                self.close_connection = True
                self.connection.close()
                return
            if fault == "slow":
                release.wait(3.0)
            status, headers = 200, {"Content-Type": "application/json", "Set-Cookie": "who=you"}
            if fault.isdigit():
                status, headers["Retry-After"] = int(fault), "0"
            if fault == "redirect":
                status, headers["Location"] = 302, "http://127.0.0.1:9/elsewhere"
            text = b"<html>" if fault == "html" else json.dumps(answer(seen)).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(text))}.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.wfile.write(text)

        def log_message(self, *_):
            pass

    release = threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    service = Service(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        release.set()
        server.shutdown()
        server.server_close()
        thread.join()


def features(places, names, *, page=7, cap=None) -> Answer:
    """OGC API Features (17-069r4): items by bbox, pages by next links, numberMatched."""

    def answer(seen: Seen) -> object:
        query = {key: values[0] for key, values in parse_qs(urlsplit(seen.path).query).items()}
        west, south, east, north = map(float, query["bbox"].split(","))
        inside = (west <= places[:, 0]) & (places[:, 0] <= east)
        inside &= (south <= places[:, 1]) & (places[:, 1] <= north)
        rows = np.flatnonzero(inside).tolist()
        matched, rows = len(rows), rows[:cap]
        start = int(query.get("offset", "0"))
        size = min(page, int(query["limit"]))
        part = rows[start : start + size]
        links = [{"rel": "self", "href": seen.path}]
        if start + size < len(rows):
            path = re.sub("&offset=[0-9]+", "", seen.path)
            links.append({"rel": "next", "href": f"{path}&offset={start + size}"})
        return {
            "type": "FeatureCollection",
            "numberMatched": matched,
            "numberReturned": len(part),
            "links": links,
            "features": [
                {
                    "type": "Feature",
                    "id": row,
                    "geometry": {"type": "Point", "coordinates": places[row].tolist()},
                    "properties": {"name": names[row]},
                }
                for row in part
            ],
        }

    return answer


_AROUND = re.compile(
    r"\[out:json\]\[timeout:25\];nwr\[\"amenity\"=\"cafe\"\]"
    r"\(around:(\d+),(-?[\d.]+),(-?[\d.]+)\);out center (\d+);"
)


def overpass(places, names) -> Answer:
    """Overpass's interpreter: nodes have lat and lon, ways a center."""

    def answer(seen: Seen) -> object:
        query = parse_qs(seen.body.decode())["data"][0]
        radius, lat, lon, limit = _AROUND.fullmatch(query).groups()
        near = haversine_m(float(lon), float(lat), places) <= float(radius)
        rows = np.flatnonzero(near).tolist()[: int(limit)]
        elements = []
        for row in rows:
            at = {"lon": places[row, 0], "lat": places[row, 1]}
            tags = {"amenity": "cafe", "name": names[row]}
            kind = {"type": "node", **at} if row % 2 else {"type": "way", "center": at}
            elements.append({**kind, "id": row, "tags": tags})
        return {"version": 0.6, "elements": elements}

    return answer


def plain_json(places, names, *, page=None, cap=None) -> Answer:
    """A service of its own kind, with pages by token."""

    def answer(seen: Seen) -> object:
        if seen.method == "POST":
            asked = json.loads(seen.body)
        else:
            asked = {key: v[0] for key, v in parse_qs(urlsplit(seen.path).query).items()}
        lon, lat = map(float, asked["centre"].split())
        near = haversine_m(lon, lat, places) <= float(asked["radius"])
        rows = np.flatnonzero(near).tolist()[:cap]
        start = int(asked.get("cursor", 0))
        part = rows if page is None else rows[start : start + page]
        more = page is not None and start + page < len(rows)
        items = [
            {"name": names[row], "location": {"lng": places[row, 0], "lat": places[row, 1]}}
            for row in part
        ]
        return {"data": {"items": items}, "next": str(start + page) if more else None}

    return answer
