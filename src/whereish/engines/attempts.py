"""One report per record, whatever a lazy engine runs again: attempts, and a choice.

Engines re-run tasks: after a failure, speculatively, when a cached block is evicted, and
on every action on a lazy frame.  If the reports themselves were lazy, each run would draw
new noise, and two runs together would tell more than was promised.  So nothing lazy is
handed out; reports are *written once*:

* every *attempt* at a partition draws fresh noise and writes it to a file of its own, in
  the job's hidden folder, where no reader looks (:func:`write_attempt`);
* the engine returns one attempt's file name per partition, and those files are *moved*
  to another hidden folder, whose name no task ever knew: an attempt that is late, or
  that nobody waited for, cannot add to it (:func:`release_attempts`);
* that folder is renamed to the output in one step (charging a ledger before), and the
  frame that is returned reads it, whatever is done with it.

So a record has one report that anybody can see.  The alternative, noise keyed by (job
secret, record id) with a pseudorandom function, needs a unique id in every row, which
most data lacks, and repeats the noise where ids repeat; writing once needs none, and
holds for every mechanism.
"""

from __future__ import annotations

import contextlib
import itertools
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from whereish.errors import InvalidInput, NotWritten, WhereishError
from whereish.publish.formats.tables import Writing, write_table
from whereish.publish.ledger.ledger import Ledger
from whereish.publish.release.counts import Counts, add_counts
from whereish.publish.release.messages import reason
from whereish.publish.release.staging import staging
from whereish.publish.rows.bad_rows import numbered_from
from whereish.publish.rows.sanitizer import BatchSanitizer
from whereish.publish.rows.subjects import Tally
from whereish.randomness import secure

__all__ = ["Attempt", "Job", "Part", "release_attempts", "write_attempt"]


@dataclass(frozen=True)
class Part:
    """One attempt at a partition: the file it wrote, its rows, and who is in it."""

    name: str
    rows: int
    counts: Counts = field(default_factory=dict)


Attempt = Callable[[Iterable[pa.RecordBatch], int], Part | None]
"""A partition's batches and its number to the file of its reports; None without rows.

It can be pickled, and run on any worker, any number of times.
"""


@dataclass(frozen=True)
class Job:
    """What is released of a frame, and who is charged for it."""

    frame: Any
    kernel: BatchSanitizer
    subject: str | None = None
    ledger: Ledger | None = None

    def __post_init__(self) -> None:
        if (self.ledger is None) != (self.subject is None):
            raise InvalidInput(
                "ledger and subject belong together: the column of whom to charge, and where"
            )

    @property
    def columns(self) -> list[str]:
        """What is read of the frame, each column once."""
        subject = () if self.subject is None else (self.subject,)
        return list(dict.fromkeys((*self.kernel.columns, *subject)))

    def attempt(self, folder: Path) -> Attempt:
        """The function that workers run, into a folder that they share."""
        return partial(write_attempt, kernel=self.kernel, subject=self.subject, folder=str(folder))


def write_attempt(
    batches: Iterable[pa.RecordBatch],
    partition: int,
    *,
    kernel: BatchSanitizer,
    subject: str | None,
    folder: str,
) -> Part | None:
    """One attempt: fresh noise into a file that no other attempt writes; None without rows."""
    filled = (batch for batch in batches if batch.num_rows)
    first = next(filled, None)
    if first is None:
        return None
    rng = secure()
    schema = kernel.schema(first.schema)
    tally = None if subject is None else Tally(kernel, subject)
    rows = 0

    def reports() -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for batch in itertools.chain([first], filled):
            with numbered_from(rows, f"of partition {partition}"):
                if tally is not None:
                    tally.add(batch)
                drawn = kernel(batch, schema, rng)
            rows += batch.num_rows
            yield drawn

    name = f"part-{partition:05d}-{uuid.uuid4().hex}.parquet"
    statement = kernel.statement(reproducible=rng.reproducible)
    writing = Writing(schema, statement, kernel.geometries)
    try:
        write_table(Path(folder) / name, writing, reports())
    except pa.ArrowException:
        # Arrow's message may quote a value.
        raise InvalidInput("a column holds values of an unexpected type") from None
    except OSError as error:
        if isinstance(error, WhereishError):
            raise
        raise NotWritten(
            f"a worker cannot write reports ({reason(error)}); nothing was released"
        ) from None
    return Part(name, rows, {} if tally is None else tally.counts)


@contextlib.contextmanager
def _open_to_tasks(folder: Path) -> Iterator[Path]:
    """A new folder that tasks write to; afterwards it has a name that no task knows.

    A task that goes on after the job has failed (another thread of Dask) adds nothing to it
    then, so that it can be removed.
    """
    folder.mkdir()
    try:
        yield folder
    finally:
        folder.rename(folder.with_name(f"closed-{uuid.uuid4().hex}"))


def release_attempts(
    job: Job, output: Path, run: Callable[[Attempt], Iterable[Part | None]]
) -> None:
    """Run the attempts in a hidden folder, choose, charge, and give the output its name.

    `run` applies the attempt to every partition and returns one part of each.
    """
    try:
        with staging(output) as place:
            if place.unfinished() is not None:
                raise InvalidInput(
                    f"an earlier job for the output {output.name} was charged, or about to be, and"
                    " interrupted: finish it with whereish.publish.release.finish(output, ledger),"
                    " or give it up with abandon(output, ledger)"
                )
            place.refuse_foreign(overwrite=False)
            place.empty()
            counts: Counts = {}
            with _open_to_tasks(place.folder / f"attempts-{uuid.uuid4().hex}") as attempts:
                parts = [part for part in run(job.attempt(attempts)) if part is not None]
                if not parts:
                    raise InvalidInput("the frame has no rows, so nothing is released")
                place.staged.mkdir()
                for part in parts:
                    (attempts / part.name).replace(place.staged / part.name)
                    add_counts(counts, part.counts)
            place.commit(uuid.uuid4().hex, sum(part.rows for part in parts), counts, job.ledger)
    except OSError as error:
        if isinstance(error, NotWritten):
            raise
        raise NotWritten(
            f"the output {output.name} cannot be written ({reason(error)}); nothing was released"
        ) from None
