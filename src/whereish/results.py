"""Results as plain values: what a computation found, for JSON.

Strict JSON has no infinities: these become the words "inf", "-inf" and "nan", which `float` reads.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

__all__ = ["JsonResult", "plain"]


class JsonResult:
    """A data class whose fields are what was found; those that may tell a secret are left out."""

    _NOT_TOLD: ClassVar[tuple[str, ...]] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain numbers and words, for `json.dumps`."""
        told = (field.name for field in fields(self) if field.name not in self._NOT_TOLD)  # type: ignore[arg-type]
        return {name: plain(getattr(self, name)) for name in told}


def plain(value: Any) -> Any:
    """The same in numbers, words, lists and dicts.

    >>> import numpy as np
    >>> plain({"factor": np.float64(np.inf), "worst": (np.int64(2), None)})
    {'factor': 'inf', 'worst': [2, None]}
    """
    if isinstance(value, Enum):
        return value.name.lower()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, float | Fraction) and not isinstance(value, np.generic):
        return value if isinstance(value, float) and math.isfinite(value) else str(value)
    return _of_object(value)


def _of_object(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if hasattr(value, "to_json"):
        return plain(value.to_json())
    if hasattr(value, "coordinates"):  # points, which only results of reports hold
        return plain(value.coordinates)
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    raise TypeError(f"a result has a {type(value).__name__}, which has no plain form")
