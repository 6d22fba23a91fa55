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

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import msgspec

if TYPE_CHECKING:
    from whereish.lbs.sources.source import Source

__all__ = ["SourceConfig", "open_source"]

Count = Annotated[int, msgspec.Meta(ge=1)]


class _Kind(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """One kind of source; fields that are not its own are refused.

    Those that it has are named as the parameters of the source that it opens.
    """


class StoreConfig(_Kind, frozen=True, tag="store"):
    """A file that ``whereish places`` made."""

    file: str


class PostgisConfig(_Kind, frozen=True, tag="postgis"):
    """A table of points in PostGIS, connected to on the first question."""

    address: str
    table: str
    geometry: str = "geometry"
    keep: tuple[str, ...] = ()


class _Foreign(_Kind, frozen=True, kw_only=True):
    """A server that is asked over HTTP."""

    url: str
    headers: dict[str, str] = {}
    timeout_s: Annotated[float, msgspec.Meta(gt=0)] = 10.0
    attempts: Count = 3


class OgcConfig(_Foreign, frozen=True, tag="ogc", kw_only=True):
    """A collection of an OGC API Features server."""

    collection: str
    keep: tuple[str, ...] = ()
    limit: Count = 1000


class OverpassConfig(_Foreign, frozen=True, tag="overpass", kw_only=True):
    """OpenStreetMap through an Overpass server."""

    what: str
    keep: tuple[str, ...] = ()
    limit: Count = 100_000


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


SourceConfig: TypeAlias = StoreConfig | PostgisConfig | OgcConfig | OverpassConfig | JsonConfig
_OPENED: Final[dict[type[_Kind], tuple[str, str]]] = {
    PostgisConfig: ("postgis", "PostgisSource"),
    OgcConfig: ("features", "OgcFeatures"),
    OverpassConfig: ("features", "Overpass"),
    JsonConfig: ("features", "JsonSource"),
}
"""Module and name of what each kind opens: only those in use are loaded."""


def open_source(places: str | None, named: SourceConfig | None, beside: Path) -> Source | None:
    """The source of a configuration, if it has one."""
    if places is not None:
        named = StoreConfig(places)
    if named is None:
        return None
    if isinstance(named, StoreConfig):
        from whereish.lbs.sources.store import PlaceStore

        return PlaceStore(beside / named.file)
    module, name = _OPENED[type(named)]
    kind: type[Source] = getattr(import_module(f"whereish.lbs.sources.{module}"), name)
    return kind(**msgspec.structs.asdict(named))
