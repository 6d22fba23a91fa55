"""What is reported when a release stops on its way: one wording for local files and for Hadoop.

A message says on which side of the rename it happened, whether a charge is pending, and how
to go on; each release machine passes its own way of going on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from whereish.errors import InvalidInput, LedgerUnavailable, NotFinished, NotWritten, WhereishError

__all__ = [
    "already_released",
    "not_finished",
    "not_renamed",
    "reason",
    "removed_since",
    "report_after_release",
    "unreadable_manifest",
]


def not_finished(name: str, trouble: str, why: str, *, charged: str, go_on: str) -> NotFinished:
    """For the output `name`, which was released; `charged` is what else it was."""
    return NotFinished(f"the output {name} was released{charged}, but {trouble} ({why}){go_on}")


@contextlib.contextmanager
def report_after_release(
    name: str, trouble: str, *, charged: str = "", go_on: str = ""
) -> Iterator[None]:
    """Around what comes after the rename: its failure does not undo the release.

    `charged` is what else is reported of the release, such as " and charged"; only then is
    there something to go on with.
    """
    try:
        yield
    except (OSError, LedgerUnavailable) as error:
        go_on = f": {go_on}" if charged else ""
        raise not_finished(name, trouble, reason(error), charged=charged, go_on=go_on) from None


def not_renamed(name: str, why: str, pending: str = "") -> NotWritten:
    """For an output that is staged and cannot get its public name."""
    return NotWritten(
        f"the output {name} cannot be given its name ({why}); nothing was released{pending}"
    )


def already_released(go_on: str) -> InvalidInput:
    """For an attempt to give up what was released."""
    return InvalidInput(
        f"this release has left already, so it cannot be refunded: {go_on} finishes it"
    )


def removed_since(name: str) -> InvalidInput:
    """For a release that somebody removed before it was finished."""
    return InvalidInput(
        f"the output {name} had been released, and is not there now; its charge stands: run again"
        " to make, and charge, a new one"
    )


def unreadable_manifest(folder: str) -> InvalidInput:
    """For a hidden folder whose manifest is damaged."""
    return InvalidInput(
        f"the note that an earlier run left in {folder} cannot be read, so how far it came is"
        " known only to the ledger: look there, then remove that folder"
    )


def reason(error: Exception) -> str:
    """Why it failed: the system's text, without the path that Python adds to it."""
    if isinstance(error, OSError) and not isinstance(error, WhereishError):
        return error.strerror or type(error).__name__
    return str(error) or type(error).__name__
