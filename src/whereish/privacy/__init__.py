"""WHAT is promised: distinguishability metrics, and guarantees that carry them."""

from whereish.privacy.guarantee import Basis, Guarantee
from whereish.privacy.metric import (
    Chebyshev,
    Euclidean,
    Finite,
    Geodesic,
    GreatCircle,
    Manhattan,
    Metric,
    TupleMax,
    TupleSum,
)

__all__ = [
    "Basis",
    "Chebyshev",
    "Euclidean",
    "Finite",
    "Geodesic",
    "GreatCircle",
    "Guarantee",
    "Manhattan",
    "Metric",
    "TupleMax",
    "TupleSum",
]
