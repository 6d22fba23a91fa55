"""From staged reports on a Hadoop file system to their name, through crashes and races.

The steps are those of :mod:`whereish.publish.release.staging`: manifest, charge, rename, confirm.

There is no lock.  The file system's rename must be atomic (HDFS: yes; object stores: no),
and decides between a driver that releases and another that gives the release up: the
staged folder can be renamed to the output, or to the trash, and only once
(:class:`~whereish.engines.hadoop.files.HadoopPlace`).  What went to the trash is
refunded, by whoever finds that the charge is pending; what left for the output never is,
also if it is not there any more.
"""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from typing import Any, NoReturn

from whereish.engines.hadoop.files import HadoopPlace
from whereish.errors import BudgetExceeded, InvalidInput, LedgerUnavailable
from whereish.publish.ledger.ledger import (
    PENDING,
    REFUNDED,
    RELEASED,
    Ledger,
    charges_of,
)
from whereish.publish.release.counts import Counts, counts_from_json, counts_to_json
from whereish.publish.release.messages import (
    already_released,
    removed_since,
    report_after_release,
    unreadable_manifest,
)

__all__ = [
    "abandon",
    "confirm_and_clear",
    "finish",
    "refuse_unfinished",
    "release_staged",
    "write_manifest",
]

_FINISH = "whereish.engines.hadoop.finish(session, output, ledger)"
_ABANDON = "whereish.engines.hadoop.abandon(session, output, ledger)"
_GO_ON = f"{_FINISH} finishes it, or abandon(session, output, ledger) gives it up"


def finish(session: Any, output: str, ledger: Ledger) -> bool:
    """Finish an interrupted release at the address `output`; False if there is none.

    Raises
    ------
    InvalidInput
        Also if the release was given up, or had left and is not there any more: then that
        is brought to its end (refunded, or confirmed), and reported.
    """
    place = HadoopPlace(session, output)
    release = place.unfinished()
    if release is None:
        return False
    release_staged(place, release, _read_manifest(place, release, ledger), ledger)
    return True


def abandon(session: Any, output: str, ledger: Ledger) -> bool:
    """Give up an unfinished release at the address `output`, and refund it; False if none.

    The staged reports are moved to the trash and destroyed first: what is refunded never
    leaves, also if the release's own driver is alive.  An `abandon` that was interrupted
    is repeated.
    """
    place = HadoopPlace(session, output)
    release = place.unfinished()
    if release is None:
        return False
    _read_manifest(place, release, ledger)
    if not place.discard(release):
        if place.stands(release) or ledger.state(release) in (PENDING, RELEASED):
            raise already_released(_FINISH)
        place.delete(place.hidden(release))
        return True
    _refund_discarded(place, release, ledger)
    return True


def refuse_unfinished(place: HadoopPlace) -> None:
    """No other release of this output is on its way."""
    release = place.unfinished()
    if release is None:
        return
    if place.stands(release):
        raise InvalidInput(
            f"the output {place.name} was released and charged by another job, which is running or"
            f" was interrupted before the end: {_FINISH} ends it"
        )
    raise InvalidInput(
        f"another job for the output {place.name} is running or was interrupted: wait for it, or"
        f" {_GO_ON}"
    )


def release_staged(place: HadoopPlace, release: str, counts: Counts, ledger: Ledger) -> None:
    """Charge, rename, confirm: also for what an earlier run had staged."""
    staged = place.staged(release)
    if place.exists(staged) and _charge(place, release, counts, ledger):
        pending = f", and its charge is pending: {_GO_ON}"
        there = place.rename(staged, release, pending=pending)
    else:
        there = place.stands(release)
    if not there:
        _report_absence(place, release, ledger)
    confirm_and_clear(place, ledger, release)


def _charge(place: HadoopPlace, release: str, counts: Counts, ledger: Ledger) -> bool:
    """Charge what is staged; False if it was given up, or finished, in the meantime."""
    try:
        place.refuse_foreign()
    except InvalidInput as error:
        raise InvalidInput(
            f"{error}; the staged reports remain, and so does a charge that is pending: {_GO_ON}"
        ) from None
    try:
        ledger.charge(charges_of(counts), release=release, pending=True)
    except BudgetExceeded as error:
        if not place.discard(release):
            return False
        _refund_discarded(place, release, ledger)
        raise BudgetExceeded(f"{error}; what was staged is destroyed, nothing is pending") from None
    except InvalidInput:
        if ledger.state(release) != REFUNDED:
            raise
        place.discard(release)
        return False
    except LedgerUnavailable as error:
        raise LedgerUnavailable(f"{error}; nothing was released: {_GO_ON}") from None
    return True


def _refund_discarded(place: HadoopPlace, release: str, ledger: Ledger) -> None:
    """Refund what is in the trash, once, and clear its hidden folder."""
    try:
        if ledger.state(release) == PENDING:
            _refund(ledger, release)
    except LedgerUnavailable as error:
        raise LedgerUnavailable(
            f"{error}; the staged reports are destroyed, nothing was released, and a charge that"
            f" is pending waits for its refund: {_ABANDON} goes on"
        ) from None
    place.delete(place.hidden(release))


def _refund(ledger: Ledger, release: str) -> None:
    try:
        ledger.refund(release)
    except InvalidInput:  # the driver and who gave it up may both be at it
        if ledger.state(release) != REFUNDED:
            raise


def _report_absence(place: HadoopPlace, release: str, ledger: Ledger) -> NoReturn:
    """For reports that are neither staged nor under their name; end what they leave behind.

    They are in the trash; or all is cleared away, after a refund or a confirmation, which
    the ledger tells; or they had left, and somebody has removed them.
    """
    hidden = place.hidden(release)
    trashed = place.exists(place.trash(release))
    cleared = not place.exists(hidden)
    try:
        state = ledger.state(release)
    except LedgerUnavailable as error:
        raise LedgerUnavailable(
            f"{error}; the output {place.name} is not there, since its release was given up, or"
            f" removed after it had left, and a charge may be pending: {_FINISH} tells, if"
            " anything is left to do"
        ) from None
    if trashed or state in (None, REFUNDED) or (cleared and state == PENDING):
        _refund_discarded(place, release, ledger)
        raise InvalidInput(
            f"this release of the output {place.name} was given up, so nothing is released, and"
            " nothing stays charged; run again to start anew"
        )
    with _after_release(place, " and charged, and is not there now"):
        ledger.confirm(release)
        place.delete(hidden)
    raise removed_since(place.name)


def confirm_and_clear(place: HadoopPlace, ledger: Ledger | None, release: str) -> None:
    """What comes after the release; its failure does not undo that."""
    with _after_release(place, "" if ledger is None else " and charged"):
        if ledger is not None:
            ledger.confirm(release)
        place.delete(place.hidden(release))


def _after_release(place: HadoopPlace, charged: str) -> AbstractContextManager[None]:
    return report_after_release(
        place.name, "what comes after failed", charged=charged, go_on=f"{_FINISH} ends it"
    )


def write_manifest(place: HadoopPlace, release: str, counts: Counts, ledger: Ledger) -> None:
    """The manifest: from here on the release is unfinished until it is cleared away."""
    text = json.dumps({"ledger": ledger.identity, "counts": counts_to_json(counts)})
    place.write(f"{place.hidden(release)}/manifest.json", text)


def _read_manifest(place: HadoopPlace, release: str, ledger: Ledger) -> Counts:
    """The charges of a release, which must be this ledger's."""
    hidden = place.hidden(release)
    try:
        noted = json.loads(place.read(f"{hidden}/manifest.json"))
        identity = noted["ledger"]
        counts = counts_from_json(noted["counts"])
    except (ValueError, KeyError, TypeError):
        raise unreadable_manifest(hidden.rpartition("/")[2]) from None
    if identity != ledger.identity:
        raise InvalidInput(
            f"the release of the output {place.name} belongs to another ledger, so nothing has"
            " changed: open the ledger that its job was given"
        )
    return counts
