"""Places in a PostGIS table, by true distance on WGS84."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from whereish.errors import InvalidInput, ServiceUnavailable, import_extra
from whereish.lbs.sources.source import Places, checked_query

__all__ = ["PostgisSource"]


class PostgisSource:
    """Points of a table in PostGIS (the `postgres` extra).

    Parameters
    ----------
    address
        "postgresql://...".
    table
        Its name, perhaps with a schema: "public.cafes".
    geometry
        Its column of points, geometry in EPSG:4326 or geography.  An index of
        ``(geometry::geography)`` makes queries fast.
    keep
        Further columns that results carry.
    """

    def __init__(
        self, address: str, table: str, *, geometry: str = "geometry", keep: Sequence[str] = ()
    ) -> None:
        if not address.startswith(("postgresql://", "postgres://")):
            raise InvalidInput("address must be 'postgresql://...'")
        self._psycopg = import_extra("psycopg", "postgres")
        from psycopg import sql

        place = sql.SQL("{}::geography").format(sql.Identifier(geometry))
        point = sql.SQL("{}::geometry").format(sql.Identifier(geometry))
        self._names = ("lon", "lat", *keep)
        self._query = sql.SQL(
            "SELECT ST_X({point}), ST_Y({point}){kept} FROM {table}"
            " WHERE ST_DWithin({place}, ST_SetSRID(ST_MakePoint(%s, %s), 4326)::geography, %s)"
        ).format(
            point=point,
            place=place,
            kept=sql.SQL("").join(sql.SQL(", {}").format(sql.Identifier(name)) for name in keep),
            table=sql.Identifier(*table.split(".")),
        )
        self._address = address
        self._connection: Any = None

    def __repr__(self) -> str:
        return "PostgisSource()"

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def around(self, lon: float, lat: float, radius_m: float) -> Places:
        """Every point within `radius_m` true metres.

        Raises
        ------
        ServiceUnavailable
            If the database cannot be asked.
        """
        lon, lat, radius_m = checked_query(lon, lat, radius_m)
        # Its geodesics are good to a millimetre.
        rows = self._rows((lon, lat, radius_m * (1 + 1e-9) + 1e-3))
        columns: Any = zip(*rows, strict=True) if rows else ((),) * len(self._names)
        return Places(dict(zip(self._names, map(list, columns), strict=True)))

    def _rows(self, values: tuple[float, float, float]) -> list[tuple[Any, ...]]:
        try:
            if self._connection is None or self._connection.closed:
                self._connection = self._psycopg.connect(self._address, autocommit=True)
            return list(self._connection.execute(self._query, values).fetchall())
        except self._psycopg.Error as error:
            raise ServiceUnavailable(
                f"the PostGIS table cannot be asked ({type(error).__name__})"
            ) from None
