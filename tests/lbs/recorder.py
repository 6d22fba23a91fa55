"""A source of places for tests of what a service is asked."""

from __future__ import annotations

from whereish.lbs.sources.source import Places


class Recorder:
    """A source that notes what it was asked."""

    def __init__(self, inner=None):
        self.inner, self.asked = inner, []

    def around(self, lon, lat, radius_m):
        self.asked.append((lon, lat, radius_m))
        return (
            Places({"lon": (), "lat": ()})
            if self.inner is None
            else self.inner.around(lon, lat, radius_m)
        )
