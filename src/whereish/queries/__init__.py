"""Queries on records and sets of places, with their sensitivities; private answers.

>>> import whereish as wh
>>> ages = wh.Records(wh.Values(1, 100), 3)
>>> print(wh.queries.Sum().sensitivity(ages.hamming).value)
100
"""

from whereish.queries.additive import Count, Sum
from whereish.queries.answer import Answer, answer
from whereish.queries.average import Average
from whereish.queries.centroid import Centroid
from whereish.queries.finite_query import FiniteQuery
from whereish.queries.percentile import Maximum, Median, Minimum, Percentile
from whereish.queries.places import PlacesReport, report_centroid, report_each
from whereish.queries.record_query import RecordQuery
from whereish.queries.sensitivity import Notion, Sensitivity
from whereish.queries.universal_optimality import UniversalOptimality

__all__ = [
    "Answer",
    "Average",
    "Centroid",
    "Count",
    "FiniteQuery",
    "Maximum",
    "Median",
    "Minimum",
    "Notion",
    "Percentile",
    "PlacesReport",
    "RecordQuery",
    "Sensitivity",
    "Sum",
    "UniversalOptimality",
    "answer",
    "report_centroid",
    "report_each",
]
