"""The same kernel where large data already is: ``whereish.spark`` and ``whereish.dask``.

An engine is a module of this folder with a ``sanitize``, and its name in the list below
(docs/extending.md).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = [
    "dask",
    "ray",
    "spark",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f"whereish.engines.{name}")
    raise AttributeError(f"module 'whereish.engines' has no attribute {name!r}")
