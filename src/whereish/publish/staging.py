"""From a computed release to its public name, through crashes.

A job works in a hidden folder beside its output, which it holds a lock on:

1. *stage*: write the output there, sync it;
2. *manifest*: note the release's id, what was asked, the charges, and the staged
   bytes' hash; sync it;
3. *charge* the ledger under the release's id, as pending;
4. *rename* the staged output to its name, and sync the folder;
5. *confirm* to the ledger that it has left; clear the hidden folder.

A crash before 2 leaves nothing that anybody has seen, and the next run starts anew.
After 2 the next run finds the manifest and goes on with the very bytes that were
staged: no row is perturbed twice, and a charge under a known id is not made twice.
Until 4 nothing is visible; so what is visible has been charged.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whereish.errors import BudgetExceeded, InvalidInput
from whereish.publish.ledger import PENDING, REFUNDED, Ledger, charges_of

__all__ = ["Staging", "abandon", "staging"]

Counts = dict[tuple[str, float], int]


@dataclass(frozen=True)
class Manifest:
    """A staged release that may have been charged."""

    release: str
    request: str
    digest: str
    rows: int
    counts: Counts

    def to_json(self) -> dict[str, Any]:
        lines = [[who, eps, times] for (who, eps), times in self.counts.items()]
        return {**self.__dict__, "counts": lines}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Manifest:
        counts = {(who, eps): times for who, eps, times in data["counts"]}
        return cls(data["release"], data["request"], data["digest"], data["rows"], counts)


@contextlib.contextmanager
def staging(output: Path) -> Iterator[Staging]:
    """The locked hidden folder of `output`; it is gone afterwards unless a manifest is in it."""
    if not output.parent.is_dir():
        raise InvalidInput(f"the folder of the output {output.name} does not exist")
    folder = output.with_name(f".{output.name}.whereish")
    with _locked(folder):
        place = Staging(output, folder)
        try:
            yield place
        finally:
            if not place.manifest_path.exists():
                shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Create and lock a folder; the lock dies with the process."""
    try:
        import fcntl
    except ImportError:
        raise InvalidInput(
            "files can be released only on a system with POSIX locks: sanitise a frame instead"
        ) from None
    while True:
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise InvalidInput(
                f"the folder of the output cannot be written to ({error.strerror})"
            ) from None
        try:
            descriptor = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Its former owner may have removed the folder between our opening and our lock.
            if not folder.exists() or not os.path.samestat(os.fstat(descriptor), folder.stat()):
                continue
            yield
            return
        except BlockingIOError:
            raise InvalidInput(
                "another job is writing this output: wait for it, or choose another name"
            ) from None
        finally:
            os.close(descriptor)


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
        return self.folder / f"staged{self.output.suffix}"

    @property
    def beside(self) -> Path:
        """Where the statement is written that will stand beside the output."""
        return self.folder / "statement.json"

    def unfinished(self) -> Manifest | None:
        """The manifest of an earlier run, if it came as far as that."""
        if not self.manifest_path.exists():
            return None
        return Manifest.from_json(json.loads(self.manifest_path.read_text()))

    def empty(self) -> None:
        """Remove all that an earlier run left; the manifest first."""
        self.manifest_path.unlink(missing_ok=True)
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def commit(self, request: str, rows: int, counts: Counts, ledger: Ledger | None) -> None:
        """Steps 1 (its sync) to 5 for an output that is written."""
        _sync_tree(self.folder)
        if ledger is None:
            self._rename()
            return
        manifest = Manifest(uuid.uuid4().hex, request, _digest(self.staged), rows, counts)
        partial = self.folder / "manifest.part"
        partial.write_text(json.dumps(manifest.to_json()))
        _sync(partial)
        partial.replace(self.manifest_path)
        _sync(self.folder)
        self.finish(manifest, ledger)

    def finish(self, manifest: Manifest, ledger: Ledger) -> None:
        """Steps 3 to 5, also for a manifest of an earlier run."""
        if ledger.state(manifest.release) == REFUNDED:
            self.empty()
            raise InvalidInput("an earlier run was given up and refunded; run again to start anew")
        if self.staged.exists():
            if _digest(self.staged) != manifest.digest:
                raise InvalidInput(
                    "the staged output of an earlier run is damaged; call"
                    " whereish.publish.staging.abandon on this output, then run again"
                )
            try:
                ledger.charge(charges_of(manifest.counts), release=manifest.release, pending=True)
            except BudgetExceeded:
                self.empty()
                raise
            self._rename()
        elif not self.output.exists() or _digest(self.output) != manifest.digest:
            ledger.confirm(manifest.release)
            self.empty()
            raise InvalidInput(
                "an earlier run had released this output, and it is no longer there; its charge"
                " stands: run again to make, and charge, a new one"
            )
        ledger.confirm(manifest.release)
        self.empty()

    def _rename(self) -> None:
        if self.beside.exists():
            self.beside.replace(self.output.with_name(self.output.name + ".whereish.json"))
        self.staged.replace(self.output)
        _sync(self.output.parent)


def abandon(output: str | Path, ledger: Ledger) -> bool:
    """Give up an unfinished release of `output` and refund it; False if there is none.

    The staged bytes are destroyed first, under the job's lock: what is refunded has
    provably never left, and never will.
    """
    output = Path(output)
    folder = output.with_name(f".{output.name}.whereish")
    if not folder.exists():
        return False
    with staging(output) as place:
        manifest = place.unfinished()
        if manifest is None or ledger.state(manifest.release) == REFUNDED:
            place.empty()
            return True
        if not place.staged.exists():
            raise InvalidInput(
                "this release has left already, so it cannot be refunded: run its job again to"
                " finish it"
            )
        if place.staged.is_dir():
            shutil.rmtree(place.staged)
        else:
            place.staged.unlink()
        _sync(place.folder)
        if ledger.state(manifest.release) == PENDING:
            ledger.refund(manifest.release)
        place.empty()
    return True


def _digest(path: Path) -> str:
    """SHA-256 of a file, or of a folder's files in the order of their names."""
    if path.is_dir():
        parts = [f"{p.relative_to(path)} {_digest(p)}" for p in sorted(path.rglob("*"))]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_tree(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        _sync(path)
    _sync(folder)
