"""Files that last or fail: locked folders, names that are never taken twice, syncs, digests."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from whereish.errors import InvalidInput

__all__ = ["digest", "locked", "remove", "rename_into_place", "sync", "sync_tree"]


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Create and lock a folder; the lock dies with the process."""
    try:
        import fcntl
    except ImportError:
        with _locked_by_file(folder):
            yield
        return
    while True:
        made = False
        try:
            with contextlib.suppress(FileExistsError):
                folder.mkdir(mode=0o700)
            made = True
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError as error:
            if made and isinstance(error, FileNotFoundError):
                continue  # its former owner has just removed it
            raise InvalidInput(
                f"the hidden folder {folder.name} of the output cannot be made or opened"
                f" ({error.strerror})"
            ) from None
        try:
            found = os.fstat(descriptor)
            if found.st_uid != os.geteuid() or found.st_mode & 0o077:
                raise InvalidInput(
                    f"the hidden folder {folder.name} must be this user's and closed to others,"
                    " which it is not: look who made it, then remove it"
                )
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Its former owner may have removed the folder between our opening and our lock.
            if not folder.exists() or not os.path.samestat(found, folder.stat()):
                continue
            yield
            return
        except BlockingIOError:
            raise InvalidInput(_BUSY) from None
        finally:
            os.close(descriptor)


_BUSY = "another job is writing this output: wait for it, or choose another name"


@contextlib.contextmanager
def _locked_by_file(folder: Path) -> Iterator[None]:
    """The same on a system without POSIX locks (Windows): a locked file beside the folder.

    Who may open the folder is what the folder of the output lets.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder.with_name(f"{folder.name}.lock"), timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise InvalidInput(_BUSY) from None
    try:
        folder.mkdir(exist_ok=True)
        yield
    finally:
        lock.release()
        with contextlib.suppress(OSError):
            Path(lock.lock_file).unlink(missing_ok=True)


def rename_into_place(source: Path, target: Path, overwrite: bool) -> None:
    """Give a staged output its name; without `overwrite` whatever has that name stays.

    A hard link, unlike a rename, fails if the name is taken.  Where a file system has none,
    the check just before must do.
    """
    if not overwrite and not source.is_dir():
        try:
            os.link(source, target)
            return
        except FileExistsError:
            raise
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS):
                raise
    source.replace(target)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def digest(path: Path) -> str:
    """SHA-256 of a file, or of a folder's files in the order of their names."""
    if path.is_dir():
        parts = [f"{p.relative_to(path)} {digest(p)}" for p in sorted(path.rglob("*"))]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    windows = os.name == "nt"
    if windows and path.is_dir():
        return  # it has no handle to sync, and its names are in the file system's journal
    descriptor = os.open(path, os.O_RDWR if windows else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Sync all that is below a folder, then itself."""
    for path in sorted(folder.rglob("*"), reverse=True):
        sync(path)
    sync(folder)
