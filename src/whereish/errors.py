"""The errors of whereish, all below one root.

::

    WhereishError
    ├── InvalidInput (ValueError)     a parameter or a datum is not what it must be
    │   └── UnitError                 a quantity lacks its unit, or has the wrong one
    ├── SpaceMismatch (ValueError)    points live in one space, the mechanism in another
    ├── NotPrivate                    a certificate failed: the mechanism is withheld
    ├── SolverError                   a solver did not reach an answer worth returning
    ├── BudgetExceeded                a ledger has too little left for this release
    ├── LedgerUnavailable             a ledger cannot be read or written
    ├── ServiceError                  a service refused, or cannot be reached
    ├── ServiceUnavailable            a location service gave no answer that can be used
    ├── NotWritten (OSError)          an output could not be written, so nothing was released
    ├── NotFinished                   an output was released, and what comes after failed
    ├── InsecureRandomness            reproducible noise was about to be published
    └── MissingExtra (ImportError)    an optional dependency is not installed

    WhereishWarning (UserWarning)     what was asked can be done, and is probably not meant

A message says what a thing must be, what it got, and how to mend it.  It never
contains a coordinate of the data: locations are secrets, also in tracebacks.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = [
    "BudgetExceeded",
    "InsecureRandomness",
    "InvalidInput",
    "LedgerUnavailable",
    "MissingExtra",
    "NotFinished",
    "NotPrivate",
    "NotWritten",
    "ServiceError",
    "ServiceUnavailable",
    "SolverError",
    "SpaceMismatch",
    "UnitError",
    "WhereishError",
    "WhereishWarning",
    "import_extra",
    "printable",
    "shortened",
]


def printable(text: str) -> str:
    """`text` with control characters and the like as escapes.

    Words may come from a file: none of them may steer a terminal or forge a line.
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shortened(text: str, most: int = 100) -> str:
    """At most `most` characters of `text`, printable: for reprs."""
    words = printable(text)
    return words if len(words) <= most else f"{words[: most - 3]}..."


class WhereishError(Exception):
    """Root of all errors that whereish raises on purpose.

    >>> import whereish as wh
    >>> try:
    ...     wh.Epsilon.of("fast")
    ... except wh.WhereishError as error:
    ...     print(type(error).__name__)
    ...
    UnitError
    """


class WhereishWarning(UserWarning):
    """What was asked can be done, and is probably not what was meant.

    It is a function of names and parameters, never of the data.
    """


class InvalidInput(WhereishError, ValueError):
    """A parameter or a datum is not what it must be."""


class UnitError(InvalidInput):
    """A quantity lacks its unit, or has one of the wrong dimension."""


class SpaceMismatch(WhereishError, ValueError):
    """Points live in one space and the mechanism in another."""


class NotPrivate(WhereishError):
    """A certificate failed, so the mechanism is withheld."""


class SolverError(WhereishError):
    """A solver did not reach an answer worth returning."""


class BudgetExceeded(WhereishError):
    """A ledger has too little budget left for this release."""


class LedgerUnavailable(WhereishError):
    """A ledger cannot be read or written."""


class ServiceUnavailable(WhereishError):
    """A location service gave no answer that can be used."""


class ServiceError(WhereishError):
    """A service refused a request, or cannot be reached; `kind` is that of its problem.

    >>> from whereish.errors import ServiceError
    >>> ServiceError("the token does not allow this", kind="forbidden", status=403).status
    403
    """

    def __init__(self, message: str, *, kind: str = "unreachable", status: int = 0) -> None:
        super().__init__(message)
        self.kind, self.status = kind, status


class NotWritten(WhereishError, OSError):
    """An output could not be written, so nothing was released."""


class NotFinished(WhereishError):
    """An output was released, and charged where there is a ledger; what comes after failed."""


class InsecureRandomness(WhereishError):
    """Reproducible noise was about to be published without being asked for."""


class MissingExtra(WhereishError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"{package} is needed here and is not installed; pip install 'whereish[{extra}]'"
        )


def import_extra(module: str, extra: str) -> Any:
    """A module of an optional dependency; :class:`MissingExtra` where it is not installed."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtra(module.partition(".")[0], extra) from None
