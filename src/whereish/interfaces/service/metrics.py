"""What Prometheus may read: counts and times by route, never anything of a request's content.

With several workers the counts are kept in files of a folder that all of them share
(``PROMETHEUS_MULTIPROC_DIR``), and whoever is asked adds them up.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

__all__ = ["Metrics"]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """Requests by method, route and status; seconds by route; reports and repetitions."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "whereish_requests", "Requests.", ["method", "route", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "whereish_request_seconds",
            "Seconds to answer.",
            ["route"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.reports = Counter(
            "whereish_reports", "Reports that were drawn and answered.", registry=self.registry
        )
        self.repeated = Counter(
            "whereish_repeated", "Answers that were given again.", registry=self.registry
        )
        self.in_flight = Gauge(
            "whereish_in_flight",
            "Requests under way.",
            registry=self.registry,
            multiprocess_mode="livesum",
        )
        # What Counter.inc does after its checks, which a counter without labels always passes.
        self.count_reports: Callable[[float], None] = self.reports._value.inc
        self._counts: dict[tuple[str, str, int], Counter] = {}
        self._times: dict[str, Histogram] = {}

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answered request."""
        key = method, route, status
        count = self._counts.get(key)
        if count is None:
            count = self._counts[key] = self._requests.labels(method, route, str(status))
        times = self._times.get(route)
        if times is None:
            times = self._times[route] = self._seconds.labels(route)
        count.inc()
        times.observe(seconds)

    def text(self) -> bytes:
        """All of it in Prometheus' own format."""
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return bytes(generate_latest(self.registry))
        from prometheus_client import multiprocess

        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return bytes(generate_latest(registry))
