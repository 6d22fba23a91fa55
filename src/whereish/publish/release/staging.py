"""From a computed release to its public name, through crashes.

A job works in a hidden folder beside its output, which it holds a lock on:

1. *stage*: write the output there, sync it;
2. *manifest*: write down the release's id, what was asked, the charges, and the staged
   bytes' hash; sync it;
3. *charge* the ledger under the release's id, as pending;
4. *rename* the staged output to its name, then its statement; sync the folder;
5. *confirm* to the ledger that it has left; clear the hidden folder.

A crash before 2 leaves nothing that anybody has seen, and the next run starts anew.
After 2 the next run finds the manifest and goes on with the very bytes that were
staged: no row is perturbed twice, and a charge under a known id is not made twice.
Until 4 nothing is visible; so what is visible has been charged.  An error says on which
side of 4 it happened: :class:`~whereish.errors.NotFinished` only after it.

Giving up is the other way out, open until 4: note that, destroy the staged bytes, refund.
A crash on that way is taken up by whoever comes next.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whereish.errors import BudgetExceeded, InvalidInput, LedgerUnavailable
from whereish.publish.formats.registry import ending_of
from whereish.publish.ledger.ledger import PENDING, RELEASED, Ledger, charges_of
from whereish.publish.release.counts import Counts, counts_from_json, counts_to_json
from whereish.publish.release.durable import (
    digest,
    locked,
    remove,
    rename_into_place,
    sync,
    sync_tree,
)
from whereish.publish.release.messages import (
    already_released,
    not_renamed,
    reason,
    removed_since,
    report_after_release,
    unreadable_manifest,
)

__all__ = ["Counts", "Manifest", "Staging", "abandon", "finish", "staging"]

_GO_ON = (
    "the job is run again, or finished with whereish.publish.release.finish(output, ledger), or"
    " given up with abandon(output, ledger)"
)
_FINISH = (
    "run the same job again, or whereish.publish.release.finish(output, ledger), which draws and"
    " charges nothing more"
)


@dataclass(frozen=True)
class Manifest:
    """A staged release that may have been charged."""

    release: str
    ledger: str
    request: str
    digest: str
    rows: int
    counts: Counts
    overwrite: bool

    def to_json(self) -> dict[str, Any]:
        return {**self.__dict__, "counts": counts_to_json(self.counts)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Manifest:
        return cls(**{**data, "counts": counts_from_json(data["counts"])})

    def check_ledger(self, ledger: Ledger) -> None:
        """Refuse another ledger than the one that this release is charged to."""
        if ledger.identity != self.ledger:
            raise InvalidInput(
                "an earlier run for this output was interrupted, and it is charged to another"
                " ledger: give that one, to finish it or to give it up; nothing was changed"
            )


@contextlib.contextmanager
def staging(output: Path) -> Iterator[Staging]:
    """The locked hidden folder of `output`; it is gone afterwards unless a manifest is in it."""
    if not output.name:
        raise InvalidInput("the output must have a name; got the folder that it would be in")
    if not output.parent.is_dir():
        raise InvalidInput(f"the folder of the output {output.name} does not exist")
    folder = output.with_name(f".{output.name}.whereish")
    with locked(folder):
        place = Staging(output, folder)
        try:
            yield place
        finally:
            if not place.manifest_path.exists():
                shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Staging:
    """The hidden folder of one output, locked."""

    output: Path
    folder: Path

    @property
    def manifest_path(self) -> Path:
        return self.folder / "manifest.json"

    @property
    def staged(self) -> Path:
        """Where the output is written: the same ending, so that writers know its kind."""
        return self.folder / f"staged{ending_of(self.output)}"

    @property
    def beside(self) -> Path:
        """Where the statement is written that will stand beside the output."""
        return self.folder / "statement.json"

    @property
    def statement(self) -> Path:
        """The statement's public name."""
        return self.output.with_name(self.output.name + ".whereish.json")

    @property
    def given_up(self) -> Path:
        """The note that the staged bytes are to be destroyed and refunded."""
        return self.folder / "given-up"

    def unfinished(self) -> Manifest | None:
        """The manifest of an earlier run, if it came as far as that."""
        if not self.manifest_path.exists():
            return None
        try:
            return Manifest.from_json(json.loads(self.manifest_path.read_text()))
        except (OSError, ValueError, KeyError, TypeError):
            raise unreadable_manifest(self.folder.name) from None

    def empty(self) -> None:
        """Remove all that an earlier run left; the manifest first."""
        self.manifest_path.unlink(missing_ok=True)
        for path in self.folder.iterdir():
            remove(path)

    def commit(
        self,
        request: str,
        rows: int,
        counts: Counts,
        ledger: Ledger | None,
        *,
        overwrite: bool = False,
    ) -> None:
        """Steps 1 (its sync) to 5 for an output that is written."""
        sync_tree(self.folder)
        if ledger is None:
            self.refuse_foreign(overwrite)
            self._rename("", overwrite)
            return
        manifest = Manifest(
            uuid.uuid4().hex,
            ledger.identity,
            request,
            digest(self.staged),
            rows,
            counts,
            overwrite,
        )
        self._write_manifest(manifest)
        self.finish(manifest, ledger, overwrite=overwrite)

    def _write_manifest(self, manifest: Manifest) -> None:
        """Step 2: whole and synced, or not there."""
        partial = self.folder / "manifest.part"
        partial.write_text(json.dumps(manifest.to_json()))
        sync(partial)
        partial.replace(self.manifest_path)
        sync(self.folder)

    def finish(self, manifest: Manifest, ledger: Ledger, *, overwrite: bool = False) -> None:
        """Steps 3 to 5, also for a manifest of an earlier run.

        What it raises says how far the release has come: every failure before the rename
        leaves it unreleased, every failure after it says that it has left.
        """
        manifest.check_ledger(ledger)
        if self.given_up.exists():
            self.give_up(manifest, ledger)
            raise InvalidInput("an earlier run was given up; run again to start anew")
        there = True
        if not self.has_left():
            self._charge(manifest, ledger, overwrite or manifest.overwrite)
            self._rename(" and charged", overwrite or manifest.overwrite)
        else:
            with self._has_left(" and charged", "it cannot be read again"):
                there = self.output.exists() and digest(self.output) == manifest.digest
            if not there and ledger.state(manifest.release) not in (PENDING, RELEASED):
                self.empty()
                raise InvalidInput(
                    "the staged output of an earlier run is gone, and nobody was charged for it;"
                    " run again to start anew"
                )
            self._follow(" and charged")
        with self._has_left(" and charged", "the ledger has not confirmed it"):
            ledger.confirm(manifest.release)
        with self._has_left(" and charged", f"the folder {self.folder.name} cannot be cleared"):
            self.empty()
        if not there:
            raise removed_since(self.output.name)

    def has_left(self) -> bool:
        """Whether step 4 was reached: the staged bytes are gone, or have two names."""
        return not self.staged.exists() or (
            self.output.exists() and self.staged.samefile(self.output)
        )

    def give_up(self, manifest: Manifest, ledger: Ledger) -> bool:
        """Destroy the staged bytes, then refund them; whether there was a charge."""
        self.given_up.touch()
        sync(self.folder)
        remove(self.staged)
        sync(self.folder)
        try:
            charged = ledger.state(manifest.release) == PENDING
            if charged:
                ledger.refund(manifest.release)
        except LedgerUnavailable as error:
            raise LedgerUnavailable(
                f"{error}; the staged output is destroyed and was never released, and a charge for"
                " it is refunded when it is given up again"
            ) from None
        self.empty()
        return charged

    def _charge(self, manifest: Manifest, ledger: Ledger, overwrite: bool) -> None:
        """Step 3, if the staged bytes are whole and their name is free."""
        if digest(self.staged) != manifest.digest:
            raise InvalidInput(
                "the staged output of an earlier run is damaged; call"
                " whereish.publish.release.staging.abandon on this output, then run again"
            )
        self.refuse_foreign(overwrite)
        try:
            ledger.charge(charges_of(manifest.counts), release=manifest.release, pending=True)
        except BudgetExceeded:
            # A pending charge of an earlier run may no longer fit into the window.
            self.give_up(manifest, ledger)
            raise
        except LedgerUnavailable as error:
            raise LedgerUnavailable(
                f"{error}; nothing was released, and a charge that had arrived is not made again"
                f" when {_GO_ON}"
            ) from None
        try:
            # Once more, since a charge may wait for long.
            self.refuse_foreign(overwrite)
        except InvalidInput as error:
            raise InvalidInput(f"{error}; the charge is pending until {_GO_ON}") from None

    def refuse_foreign(self, overwrite: bool) -> None:
        """What stands under the output's names is replaced only if that was asked for."""
        for path in (self.output, self.statement):
            if os.path.lexists(path) and (not overwrite or path.is_dir()):
                raise InvalidInput(
                    f"the output {path.name} exists already, so nothing is released: remove it,"
                    " or replace a file with overwrite=True, or --overwrite (never a folder)"
                )

    def _rename(self, charged: str, overwrite: bool) -> None:
        """Step 4; `charged` is what else is stated of a release that has left.

        An output never stands beside the statement of another: one that is replaced loses
        its statement first.
        """
        try:
            if overwrite:
                self.statement.unlink(missing_ok=True)
            rename_into_place(self.staged, self.output, overwrite)
        except OSError as error:
            pending = f", and its charge is pending until {_GO_ON}" if charged else ""
            raise not_renamed(self.output.name, reason(error), pending) from None
        self._follow(charged)

    def _follow(self, charged: str) -> None:
        """Make the output last, and let its statement follow."""
        with self._has_left(charged, "its folder cannot be synced, so a power cut may undo it"):
            sync(self.output.parent)
            remove(self.staged)
        if self.beside.exists():
            with self._has_left(charged, f"its statement {self.statement.name} is not there"):
                if os.path.lexists(self.statement):
                    raise FileExistsError(errno.EEXIST, "that name is taken")
                self.beside.replace(self.statement)
                sync(self.output.parent)

    def _has_left(self, charged: str, trouble: str) -> AbstractContextManager[None]:
        """Whatever fails here fails after the release."""
        return report_after_release(self.output.name, trouble, charged=charged, go_on=_FINISH)


def finish(output: str | Path, ledger: Ledger) -> bool:
    """Finish an interrupted release of `output`, whatever job it was of; False if none is.

    Nothing is drawn anew and nobody is charged twice: the staged bytes get their name.
    """
    output = Path(output)
    if not output.with_name(f".{output.name}.whereish").exists():
        return False
    with staging(output) as place:
        manifest = place.unfinished()
        if manifest is None:
            return False
        place.finish(manifest, ledger)
    return True


def abandon(output: str | Path, ledger: Ledger) -> bool:
    """Give up an unfinished release of `output` and refund it; False if there is none.

    The staged bytes are destroyed first, under the job's lock: what is refunded has
    provably never left, and never will.
    """
    output = Path(output)
    if not os.path.lexists(output.with_name(f".{output.name}.whereish")):
        return False
    with staging(output) as place:
        manifest = place.unfinished()
        if manifest is None:
            place.empty()
            return True
        manifest.check_ledger(ledger)
        if place.has_left() and not place.given_up.exists():
            raise already_released("whereish.publish.release.finish(output, ledger)")
        place.give_up(manifest, ledger)
    return True
