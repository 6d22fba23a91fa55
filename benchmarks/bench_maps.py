"""The map suite as one of the benchmarks: see :mod:`benchmarks.map_suite`."""

from benchmarks.map_suite import main

__all__ = ["main"]
