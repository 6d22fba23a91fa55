"""Where ``/v1/nearby`` asks for places: a store beside the service, or somebody else's server.

``places = "cafes.db"`` is a store.  A table ``[source]`` names any source by its ``kind``:

    [source]
    kind = "overpass"
    url = "https://overpass.example.org/api/interpreter"
    what = 'nwr["amenity"="cafe"]'
    keep = ["name"]

Foreign servers are told reports only, without cookies, and one question is asked once.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec

if TYPE_CHECKING:
    from whereish.lbs.sources.source import Source

__all__ = ["SourceConfig", "open_source"]

Count = Annotated[int, msgspec.Meta(ge=1)]


class _Kind(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """One kind of source; fields that are not its own are refused."""


class StoreConfig(_Kind, frozen=True, tag="store"):
    """A file that ``whereish places`` made."""

    file: str

    def open(self, beside: Path) -> Source:
        """Open the file."""
        from whereish.lbs.sources.store import PlaceStore

        return PlaceStore(beside / self.file)


class PostgisConfig(_Kind, frozen=True, tag="postgis"):
    """A table of points in PostGIS."""

    address: str
    table: str
    geometry: str = "geometry"
    keep: tuple[str, ...] = ()

    def open(self, beside: Path) -> Source:
        """Connected on the first question."""
        from whereish.lbs.sources.postgis import PostgisSource

        return PostgisSource(self.address, self.table, geometry=self.geometry, keep=self.keep)


class _Foreign(_Kind, frozen=True, kw_only=True):
    """A server that is asked over HTTP."""

    url: str
    headers: dict[str, str] = {}
    timeout_s: Annotated[float, msgspec.Meta(gt=0)] = 10.0
    attempts: Count = 3

    @property
    def exchange(self) -> dict[str, Any]:
        """What every HTTP source is told."""
        asked = {"timeout_s": self.timeout_s, "attempts": self.attempts}
        return {**asked, "headers": self.headers}


class OgcConfig(_Foreign, frozen=True, tag="ogc", kw_only=True):
    """A collection of an OGC API Features server."""

    collection: str
    keep: tuple[str, ...] = ()
    limit: Count = 1000

    def open(self, beside: Path) -> Source:
        """Nothing is asked yet."""
        from whereish.lbs.sources.features import OgcFeatures

        return OgcFeatures(
            self.url, self.collection, keep=self.keep, limit=self.limit, **self.exchange
        )


class OverpassConfig(_Foreign, frozen=True, tag="overpass", kw_only=True):
    """OpenStreetMap through an Overpass server."""

    what: str
    keep: tuple[str, ...] = ()
    limit: Count = 100_000

    def open(self, beside: Path) -> Source:
        """Nothing is asked yet."""
        from whereish.lbs.sources.features import Overpass

        return Overpass(self.url, self.what, keep=self.keep, limit=self.limit, **self.exchange)


class JsonConfig(_Foreign, frozen=True, tag="json", kw_only=True):
    """Any server that answers a question about a circle in JSON."""

    body: dict[str, Any]
    results: str = "results"
    lon: str = "lon"
    lat: str = "lat"
    keep: dict[str, str] = {}
    limit: Count | None = None
    next_page: str | None = None
    page_parameter: str = "page"
    method: Literal["POST", "GET"] = "POST"

    def open(self, beside: Path) -> Source:
        """Nothing is asked yet."""
        from whereish.lbs.sources.features import JsonSource

        return JsonSource(
            self.url,
            self.body,
            results=self.results,
            lon=self.lon,
            lat=self.lat,
            keep=self.keep,
            limit=self.limit,
            next_page=self.next_page,
            page_parameter=self.page_parameter,
            method=self.method,
            **self.exchange,
        )


SourceConfig: TypeAlias = StoreConfig | PostgisConfig | OgcConfig | OverpassConfig | JsonConfig


def open_source(places: str | None, named: SourceConfig | None, beside: Path) -> Source | None:
    """The source of a configuration, if it has one."""
    if places is not None:
        named = StoreConfig(places)
    return None if named is None else named.open(beside)
