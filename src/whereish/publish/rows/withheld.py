"""Errors of code that is not ours: its message may quote a place, so only its kind is reported."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from whereish.errors import InvalidInput, WhereishError

__all__ = ["call_hiding_errors", "withholding_originals"]

_Answer = TypeVar("_Answer")
_P = ParamSpec("_P")


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


def withholding_originals(call: Callable[_P, _Answer]) -> Callable[_P, _Answer]:
    """`call`, whose errors come without those that they replaced, which may quote a place.

    ``from None`` keeps an original from being printed, and a context manager's sentence is raised
    while the original is handled: in both it stays the error's `__context__`.
    """

    @functools.wraps(call)
    def withheld(*args: _P.args, **options: _P.kwargs) -> _Answer:
        try:
            return call(*args, **options)
        except WhereishError as error:
            if error.__cause__ is None:
                error.__context__ = None
            raise

    return withheld


def _is_ours(owner: object) -> bool:
    """Whether the class, or the function, was defined in whereish."""
    home = getattr(owner, "__module__", None) or type(owner).__module__
    return str(home).partition(".")[0] == "whereish"
