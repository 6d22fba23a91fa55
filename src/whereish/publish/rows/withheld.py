"""Errors of code that is not ours: its message may quote a place, so only its kind is reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from whereish.errors import InvalidInput, WhereishError

__all__ = ["call_hiding_errors"]

_Answer = TypeVar("_Answer")


def call_hiding_errors(call: Callable[[], _Answer], owner: object, what: str) -> _Answer:
    """What `call` returns; what it raises is replaced by the name of its type.

    Sentences of whereish's own errors name no place, and pass if `owner` is of whereish; a
    subclass of elsewhere may raise them with any text.  The error that replaces another is
    raised outside its handler, so that it has no `__context__` which a log could print.
    """
    try:
        return call()
    except Exception as error:
        if isinstance(error, WhereishError) and _is_ours(owner):
            raise
        kind = type(error).__name__
    raise InvalidInput(
        f"{what} failed with {kind}; its message is withheld, since it may quote a place"
    )


def _is_ours(owner: object) -> bool:
    """Whether the class, or the function, was defined in whereish."""
    home = getattr(owner, "__module__", None) or type(owner).__module__
    return str(home).partition(".")[0] == "whereish"
