"""What goes over the wire: strict types, unknown fields refused."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from whereish.errors import InvalidInput
from whereish.interfaces.http.problems import Problem, refused_field
from whereish.interfaces.service.config import NAME

__all__ = [
    "Around",
    "AroundAnswer",
    "Batch",
    "BatchAnswer",
    "BudgetAnswer",
    "Certificate",
    "Closed",
    "Health",
    "Mechanism",
    "Mechanisms",
    "One",
    "OneAnswer",
    "Place",
    "Session",
    "SessionAnswer",
    "Step",
    "StepAnswer",
    "decoded",
]

Lon = Annotated[float, msgspec.Meta(ge=-360, le=360, description="Degrees east.")]
Lat = Annotated[float, msgspec.Meta(ge=-90, le=90, description="Degrees north.")]
Named = Annotated[str, msgspec.Meta(pattern=NAME)]
Metres = Annotated[float, msgspec.Meta(ge=0)]


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Fields that are not ours are refused."""


class Place(_Strict, frozen=True):
    """A true place, which is never stored or logged; or a report of one."""

    lon: Lon
    lat: Lat


class One(Place, frozen=True):
    """One place to report."""

    mechanism: Named | None = None
    subject: Named | None = None


class Batch(_Strict, frozen=True):
    """Several places to report; each report is charged."""

    places: Annotated[list[Place], msgspec.Meta(min_length=1)]
    mechanism: Named | None = None
    subject: Named | None = None


class OneAnswer(Place, frozen=True):
    """A report, how far off it is with probability 0.95, and what it cost."""

    mechanism: str
    epsilon_per_m: float
    charged: bool
    accuracy_m: Metres | None = None


class BatchAnswer(_Strict, frozen=True):
    """Reports in the order of the places."""

    reports: list[Place]
    mechanism: str
    epsilon_per_m: float
    charged: bool
    accuracy_m: Metres | None = None


class Session(_Strict, frozen=True):
    """A trace to begin: its total is charged now, whatever its steps spend."""

    trace: Named | None = None
    subject: Named | None = None


class SessionAnswer(_Strict, frozen=True):
    """A session; the first step has number 0."""

    session: str
    trace: str
    total_per_m: float


class Step(Place, frozen=True):
    """The next place of a session, by its number; the same step again gives the same report."""

    step: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
    time_s: Annotated[float, msgspec.Meta(ge=0, le=1e11)] | None = None


class StepAnswer(Place, frozen=True):
    """A report of a trace: fresh noise, or what was predicted from earlier reports."""

    step: int
    fresh: bool
    spent_per_m: float
    accuracy_m: Metres | None = None


class Around(One, frozen=True):
    """A place of which everything within a radius is wanted."""

    radius_m: Annotated[float, msgspec.Meta(gt=0, le=100_000)] = 300.0


class AroundAnswer(_Strict, frozen=True):
    """What is near, nearest first, and how far around the report the source was asked.

    `complete` is false where the area of interest was not wholly within what was asked for.
    """

    results: list[dict[str, Any]]
    report: Place
    retrieval_radius_m: Metres
    confidence: float
    fetched: int
    complete: bool
    accuracy_m: Metres | None = None


class Closed(_Strict, frozen=True):
    """A session that takes no further step."""

    steps: int
    spent_per_m: float


class Health(_Strict, frozen=True):
    """Whether the service answers."""

    status: str


class Mechanism(_Strict, frozen=True):
    """A mechanism that is offered."""

    id: str
    statement: str
    basis: str
    epsilon_per_m: float
    accuracy_m: Metres | None = None


class Mechanisms(_Strict, frozen=True):
    """What a token may use."""

    mechanisms: list[Mechanism]
    traces: list[str]


class Certificate(_Strict, frozen=True):
    """The guarantee in full, and when this service verified it."""

    id: str
    guarantee: dict[str, Any]
    verified_at: str
    whereish: str
    sha256: str | None = None


class BudgetAnswer(_Strict, frozen=True):
    """What is spent and left for one subject, per metre."""

    cap_per_m: float
    spent_per_m: float
    left_per_m: float
    window_s: float | None = None


_NAMES: Final = frozenset(
    name
    for message in (Place, One, Batch, Around, Session, Step)
    for name in message.__struct_fields__
)


def decoded(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    """The message in a body; a problem that quotes nothing of it otherwise."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        field = refused_field(error, _NAMES)
        raise Problem("invalid", "see the schema in /openapi.json", field=field) from None
    except (msgspec.DecodeError, UnicodeDecodeError, InvalidInput):
        raise Problem("bad-request", "the body is not JSON") from None
