"""WHAT is promised: distinguishability metrics, and guarantees that carry them."""

from whereish.privacy.guarantee import Basis, Guarantee, SpentBudget
from whereish.privacy.maps.privacy_map import PrivacyMap
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
from whereish.privacy.tuples import (
    DifferentPlaces,
    Discrete,
    NormalisedValueDistance,
    Records,
    ValueDistance,
)

__all__ = [
    "Basis",
    "Chebyshev",
    "DifferentPlaces",
    "Discrete",
    "Euclidean",
    "Finite",
    "Geodesic",
    "GreatCircle",
    "Guarantee",
    "Manhattan",
    "Metric",
    "NormalisedValueDistance",
    "PrivacyMap",
    "Records",
    "SpentBudget",
    "TupleMax",
    "TupleSum",
    "ValueDistance",
]
