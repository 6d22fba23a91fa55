"""WHAT is promised: distinguishability metrics, and guarantees that carry them."""

from whereish.privacy.distinguishability import Distinguishability
from whereish.privacy.finite import Finite
from whereish.privacy.guarantee import Basis, Guarantee, SpentBudget
from whereish.privacy.maps.geodesic import MapGeodesic
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.privacy.metric import Metric
from whereish.privacy.norms import Chebyshev, Euclidean, Geodesic, GreatCircle, Manhattan
from whereish.privacy.tuples import (
    DifferentPlaces,
    Discrete,
    NormalisedValueDistance,
    Records,
    TupleMax,
    TupleSum,
    ValueDistance,
)

__all__ = [
    "Basis",
    "Chebyshev",
    "DifferentPlaces",
    "Discrete",
    "Distinguishability",
    "Euclidean",
    "Finite",
    "Geodesic",
    "GreatCircle",
    "Guarantee",
    "Manhattan",
    "MapGeodesic",
    "Metric",
    "NormalisedValueDistance",
    "PrivacyMap",
    "Records",
    "SpentBudget",
    "TupleMax",
    "TupleSum",
    "ValueDistance",
]
