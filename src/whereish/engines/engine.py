"""What an engine is: a class of one name and three methods, and its ``sanitize`` follows.

The argument that a record has one report (:mod:`whereish.engines.attempts`), the refusals,
the ledger, the staging and the hiding of messages that may quote a location are here once,
for every engine.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Unpack, runtime_checkable

from whereish import errors
from whereish.engines.attempts import Attempt, Job, Part, release_attempts
from whereish.errors import InvalidInput, NotWritten, WhereishError
from whereish.publish.formats.tables import check_columns
from whereish.publish.ledger.ledger import Ledger
from whereish.publish.release.messages import not_finished
from whereish.publish.rows.plan import Plan, build_sanitizer, spell_out_plan
from whereish.publish.sanitize import sanitize

__all__ = ["Engine", "EngineSanitizer", "hide_engine_errors", "read_released"]

_OURS = re.compile(r"whereish\.errors\.(\w+): (.+)")


@runtime_checkable
class Engine(Protocol):
    """How a kind of lazy frame is computed.

    Messages that these methods raise are hidden, since they may quote a location, unless
    they are a :class:`~whereish.errors.WhereishError`.
    """

    @property
    def name(self) -> str:
        """The engine's name in messages."""

    def columns(self, frame: Any) -> Sequence[str]:
        """The names of the frame's columns."""

    def run(self, frame: Any, columns: Sequence[str], attempt: Attempt) -> Iterable[Part | None]:
        """Apply `attempt` to the record batches of these columns, partition by partition.

        A partition may be attempted any number of times; one part of each partition is
        returned, which an attempt has returned for it.
        """

    def read(self, folder: Path, like: Any) -> Any:
        """A frame that reads the Parquet files in `folder`, in the session of `like`."""


@dataclass(frozen=True)
class EngineSanitizer:
    """The ``sanitize`` of an engine."""

    engine: Engine

    @spell_out_plan(like=sanitize)
    def sanitize(
        self,
        frame: Any,
        output: str | Path,
        *,
        ledger: Ledger | None = None,
        subject: str | None = None,
        **plan: Unpack[Plan],
    ) -> Any:
        """Blur the locations of an engine's data frame into a new folder of Parquet files.

        Parameters
        ----------
        frame
            A data frame of this engine; it is computed once, now.
        output
            A folder that does not exist yet, on a file system that all workers share; for
            Spark also an address such as "hdfs://..." (:mod:`whereish.engines.hadoop.write`).
        lon, lat, geometry, locations
            Which columns hold the secret locations, as in :func:`whereish.sanitize`; so
            are all that follow.
        epsilon, mean_error, within, confidence, mechanism, options, epsilon_column
            The privacy level of each report, and what draws it.
        keep, coarsen
            Which further columns are released, as they are or as coarse times.
        bbox, wrap, region, remap
            Where all locations must lie, whether longitudes count from 0 to 360, where reports
            stay, and public places to move them to.
        ledger, subject
            Where to charge, and the column of whom.

        Returns
        -------
        A data frame of this engine that reads `output`.

        Raises
        ------
        InvalidInput
            If a column is missing, there are no rows, the output exists, or the engine's job
            fails; then nothing is released.
        NotFinished
            If the output was released, and what comes after failed.
        """
        sanitizer = build_sanitizer(plan)
        with hide_engine_errors(self.engine.name):
            present = [str(name) for name in self.engine.columns(frame)]
        job = Job(frame, sanitizer, subject, ledger)
        check_columns("frame", present, job.columns)
        return self.release(job, str(output))

    def release(self, job: Job, output: str) -> Any:
        """Run the job once into the folder `output`, and read it."""
        folder = Path(output).absolute()

        def run(attempt: Attempt) -> list[Part | None]:
            with hide_engine_errors(self.engine.name):
                return list(self.engine.run(job.frame, job.columns, attempt))

        release_attempts(job, folder, run)
        with read_released(folder.name, job):
            return self.engine.read(folder, job.frame)


@contextlib.contextmanager
def hide_engine_errors(engine: str) -> Iterator[None]:
    """Around an engine's work on true locations: only our own messages come out of it.

    Any other message, of a task, a parser or a cast, may quote a location.
    """
    try:
        yield
    except WhereishError:
        raise
    except Exception as error:
        raise _own_error(engine, error) from None


def _own_error(engine: str, error: Exception) -> WhereishError:
    """Our own message from a task that failed elsewhere, if there is one in the error's."""
    found = _OURS.search(str(error))
    kind = getattr(errors, found[1], None) if found else None
    if found and isinstance(kind, type) and issubclass(kind, WhereishError):
        return (NotWritten if kind is NotWritten else InvalidInput)(found[2].strip())
    return InvalidInput(
        f"the {engine} job failed ({type(error).__name__}), so nothing is released; its message is"
        " withheld, since it may quote a location: compute the frame by itself to see it"
    )


@contextlib.contextmanager
def read_released(name: str, job: Job) -> Iterator[None]:
    """Around reading the released output `name`: a failure does not undo the release."""
    try:
        yield
    except Exception as error:
        charged = "" if job.ledger is None else " and charged"
        trouble, go_on = "reading it back failed", ": read it from its folder"
        why = type(error).__name__
        raise not_finished(name, trouble, why, charged=charged, go_on=go_on) from error
