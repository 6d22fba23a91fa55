"""Sources that answer in the forms of others: OGC API Features, Overpass, JSON by template."""

from __future__ import annotations

import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self

from whereish.errors import InvalidInput, ServiceUnavailable
from whereish.lbs.sources.exchange import Exchange, asked_radius
from whereish.lbs.sources.source import Places, boxes_around, checked_query

__all__ = ["JsonSource", "OgcFeatures", "Overpass"]

_MOST_PAGES = 200
_FILTER = re.compile(r"[A-Za-z]*(\[[^\[\]();]+\])+")


class _Service(ABC):
    """A source over HTTP: one question for one report, cached; close it after use."""

    _exchange: Exchange

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._exchange.host})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._exchange.close()

    def around(self, lon: float, lat: float, radius_m: float) -> Places:
        """Every place of the service within `radius_m` true metres, and perhaps some beyond.

        Raises
        ------
        ServiceUnavailable
            If the service does not answer, or not in its protocol.
        """
        lon, lat, radius_m = checked_query(lon, lat, radius_m)
        return self._exchange.cached((lon, lat, radius_m), lambda: self._ask(lon, lat, radius_m))

    @abstractmethod
    def _ask(self, lon: float, lat: float, radius_m: float) -> Places:
        """The answer of the service."""


class OgcFeatures(_Service):
    """A collection of an OGC API Features server (OGC 17-069r4), asked by bounding box.

    Pages are followed by their "next" links, on the same server.  A box across the antimeridian is
    two requests; both, and all pages, are of one report.  Of a geometry that is no point the middle
    of its bounds is taken.

    Parameters
    ----------
    url
        The server's address, such as "https://example.org/ogc".
    collection
        The name of the collection.
    keep
        Which properties results carry.
    limit
        How many features a page may have.
    options
        Those of :class:`~whereish.lbs.sources.exchange.Exchange`: timeout_s, attempts, headers.
    """

    def __init__(
        self,
        url: str,
        collection: str,
        *,
        keep: Sequence[str] = (),
        limit: int = 1000,
        **options: Any,
    ) -> None:
        from urllib.parse import quote

        self._exchange = Exchange(url, **options)
        self._items = f"{url.rstrip('/')}/collections/{quote(collection, safe='')}/items"
        self._keep, self._limit = tuple(keep), limit

    def _ask(self, lon: float, lat: float, radius_m: float) -> Places:
        features: list[Any] = []
        size, complete = 0, True
        for box in boxes_around(lon, lat, radius_m):
            more, bytes_, whole = self._pages(",".join(f"{side:.9f}" for side in box))
            features, size, complete = features + more, size + bytes_, complete and whole
        unique = {_identity(feature): feature for feature in features}
        return _of_features(list(unique.values()), self._keep, complete, size, self._exchange.host)

    def _pages(self, bbox: str) -> tuple[list[Any], int, bool]:
        features: list[Any] = []
        size, matched = 0, None
        url, params = self._items, {"bbox": bbox, "limit": str(self._limit), "f": "json"}
        for _ in range(_MOST_PAGES):
            reply = self._exchange.send("GET", url, params=params or None)
            page = reply.value
            if not isinstance(page, dict) or not isinstance(page.get("features"), list):
                raise ServiceUnavailable(f"{self._exchange.host} gave no collection of features")
            features += page["features"]
            size += reply.bytes
            matched = page.get("numberMatched", matched)
            following = [
                link.get("href")
                for link in page.get("links", [])
                if isinstance(link, dict) and link.get("rel") == "next"
            ]
            if not following:
                short = isinstance(matched, int) and matched > len(features)
                return features, size, not short
            url, params = self._exchange.same_origin(str(following[0])), {}
        return features, size, False


class Overpass(_Service):
    """OpenStreetMap through an Overpass server, asked around the report by POST.

    Parameters
    ----------
    url
        The interpreter's address, such as "https://overpass.example.org/api/interpreter".
    what
        What is asked for, as Overpass writes it: 'nwr["amenity"="restaurant"]'.
    keep
        Which tags results carry.
    limit
        The most results that are asked for; an answer with so many is not complete.
    options
        Those of :class:`~whereish.lbs.sources.exchange.Exchange`.
    """

    def __init__(
        self,
        url: str,
        what: str,
        *,
        keep: Sequence[str] = (),
        limit: int = 100_000,
        **options: Any,
    ) -> None:
        if not _FILTER.fullmatch(what):
            raise InvalidInput(
                'what must be an Overpass filter, such as \'nwr["amenity"="restaurant"]\''
            )
        self._exchange = Exchange(url, **options)
        self._what, self._keep, self._limit = what, tuple(keep), limit

    def _ask(self, lon: float, lat: float, radius_m: float) -> Places:
        query = (
            f"[out:json][timeout:25];{self._what}(around:{math.ceil(asked_radius(radius_m))},"
            f"{lat:.9f},{lon:.9f});out center {self._limit};"
        )
        reply = self._exchange.send("POST", self._exchange.url, form={"data": query})
        try:
            elements = reply.value["elements"]
            places = [one if "lat" in one else one["center"] for one in elements]
            columns: dict[str, list[Any]] = {
                "lon": [float(place["lon"]) for place in places],
                "lat": [float(place["lat"]) for place in places],
            }
            for name in self._keep:
                columns[name] = [one.get("tags", {}).get(name) for one in elements]
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ServiceUnavailable(f"{self._exchange.host} gave no answer of Overpass") from None
        complete = "remark" not in reply.value and len(elements) < self._limit
        return Places(columns, complete, reply.bytes)


class JsonSource(_Service):
    """Any service that answers a question about a circle in JSON.

    Parameters
    ----------
    url
        Its address; it has no place in it.
    body
        The question, with "{lon}", "{lat}" and "{radius_m}" where the numbers go: sent as JSON by
        POST, or as parameters by GET.
    results
        Where the list of results is, by names and dots: "data.items"; "" for the whole answer.
    lon, lat
        Where a result has its degrees: "location.lng".
    keep
        Further columns, by name and where they are.
    limit
        How many results the service gives at most: so many are not complete.
    next_page, page_parameter
        Where an answer has the token of the next page, and as which name it is sent back.
    options
        Those of :class:`~whereish.lbs.sources.exchange.Exchange`.
    """

    def __init__(
        self,
        url: str,
        body: Mapping[str, Any],
        *,
        results: str = "results",
        lon: str = "lon",
        lat: str = "lat",
        keep: Mapping[str, str] | None = None,
        limit: int | None = None,
        next_page: str | None = None,
        page_parameter: str = "page",
        method: str = "POST",
        **options: Any,
    ) -> None:
        if method not in ("POST", "GET"):
            raise InvalidInput(f"method must be 'POST' or 'GET'; got {method!r}")
        text = json.dumps(dict(body))
        if any(name not in text for name in ("{lon}", "{lat}", "{radius_m}")):
            raise InvalidInput('body must have "{lon}", "{lat}" and "{radius_m}" as values')
        self._exchange = Exchange(url, **options)
        self._body, self._method, self._limit = dict(body), method, limit
        self._results, self._lon, self._lat = results, lon, lat
        self._keep = dict(keep or {})
        self._next, self._page = next_page, page_parameter

    def _ask(self, lon: float, lat: float, radius_m: float) -> Places:
        numbers = {"{lon}": lon, "{lat}": lat, "{radius_m}": math.ceil(asked_radius(radius_m))}
        question = {name: _filled(value, numbers) for name, value in self._body.items()}
        rows: list[Any] = []
        size, complete = 0, False
        for _ in range(_MOST_PAGES):
            reply = self._send(question)
            found = _member(reply.value, self._results)
            if not isinstance(found, list):
                raise ServiceUnavailable(
                    f"{self._exchange.host} has no list at {self._results!r} of its answer"
                )
            rows, size = rows + found, size + reply.bytes
            token = None if self._next is None else _member(reply.value, self._next)
            if token in (None, "", False):
                complete = self._limit is None or len(rows) < self._limit or self._next is not None
                break
            question = {**question, self._page: token}
        try:
            columns = {
                "lon": [float(_member(row, self._lon)) for row in rows],
                "lat": [float(_member(row, self._lat)) for row in rows],
                **{name: [_member(row, at) for row in rows] for name, at in self._keep.items()},
            }
        except (TypeError, ValueError):
            raise ServiceUnavailable(
                f"{self._exchange.host} gave results without degrees at {self._lon!r} and"
                f" {self._lat!r}"
            ) from None
        return Places(columns, complete, size)

    def _send(self, question: dict[str, Any]) -> Any:
        if self._method == "POST":
            return self._exchange.send("POST", self._exchange.url, body=question)
        params = {name: str(value) for name, value in question.items()}
        return self._exchange.send("GET", self._exchange.url, params=params)


def _filled(value: Any, numbers: Mapping[str, float]) -> Any:
    """A template with its numbers: whole values stay numbers, parts of text become text."""
    if isinstance(value, str):
        if value in numbers:
            return numbers[value]
        for name, number in numbers.items():
            value = value.replace(name, f"{number:.9f}".rstrip("0").rstrip("."))
        return value
    if isinstance(value, Mapping):
        return {name: _filled(one, numbers) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(one, numbers) for one in value]
    return value


def _member(value: Any, path: str) -> Any:
    """The member of an answer at names with dots between them; None if there is none."""
    for name in path.split(".") if path else ():
        if isinstance(value, list) and name.isdigit():
            value = value[int(name)] if int(name) < len(value) else None
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return value


def _identity(feature: Any) -> str:
    own = feature.get("id") if isinstance(feature, dict) else None
    return f"id {own}" if own is not None else json.dumps(feature, sort_keys=True)


def _of_features(
    features: list[Any], keep: Sequence[str], complete: bool, size: int, host: str
) -> Places:
    try:
        places = [_middle(feature["geometry"]["coordinates"]) for feature in features]
        columns: dict[str, list[Any]] = {
            "lon": [place[0] for place in places],
            "lat": [place[1] for place in places],
        }
        for name in keep:
            columns[name] = [(feature.get("properties") or {}).get(name) for feature in features]
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        raise ServiceUnavailable(f"{host} gave features without coordinates") from None
    return Places(columns, complete, size)


def _middle(coordinates: Any) -> tuple[float, float]:
    """A point's own place; of other geometries the middle of their bounds."""
    if not isinstance(coordinates[0], list):
        return float(coordinates[0]), float(coordinates[1])
    flat = [_middle(part) for part in coordinates]
    lons, lats = zip(*flat, strict=True)
    return (min(lons) + max(lons)) / 2, (min(lats) + max(lats)) / 2
