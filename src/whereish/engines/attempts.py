"""One report per record, whatever a lazy engine runs again: attempts, and a choice.

Spark and Dask re-run tasks: after a failure, speculatively, when a cached block is
evicted, and on every action on a lazy frame.  If the reports themselves were lazy, each
run would draw new noise, and two runs together would tell more than was promised.  So
nothing lazy is handed out; reports are *materialised once*:

* every *attempt* at a partition draws fresh noise and writes it to a file of its own, in
  the job's hidden folder, where no reader looks;
* the engine returns one attempt's file name per partition, and those files are *moved*
  to another hidden folder, whose name no task ever knew: an attempt that is late, or
  that nobody waited for, cannot add to it;
* that folder is renamed to the output in one step (charging a ledger before), and the
  frame that is returned reads it, whatever is done with it.

So a record has one report that anybody can see.  The alternative, noise keyed by (job
secret, record id) with a pseudorandom function, needs a unique id in every row, which
most data lacks, and repeats the noise where ids repeat; materialising needs none, and
holds for every mechanism.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from whereish.errors import InvalidInput, NotFinished, NotWritten, WhereishError
from whereish.publish.formats.tables import Writing, write_table
from whereish.publish.ledger.ledger import Ledger
from whereish.publish.release.staging import staging
from whereish.publish.rows.sanitizer import BatchSanitizer
from whereish.publish.rows.subjects import Tally
from whereish.randomness import secure

__all__ = ["Part", "drawn", "materialised", "read_back", "wanted_columns", "withheld"]

_OURS = re.compile(r"whereish\.errors\.(\w+): (.+)")


@dataclass(frozen=True)
class Part:
    """One attempt at a partition: the file it wrote, and who is in it."""

    name: str
    rows: int
    counts: dict[tuple[str, float], int] = field(default_factory=dict)


def wanted_columns(kernel: BatchSanitizer, subject: str | None, ledger: Ledger | None) -> list[str]:
    """What to ask of a frame."""
    if (ledger is None) != (subject is None):
        raise InvalidInput(
            "ledger and subject belong together: the column of whom to charge, and where"
        )
    return list(dict.fromkeys((*kernel.columns, *(() if subject is None else (subject,)))))


def drawn(
    batches: Iterable[pa.RecordBatch],
    kernel: BatchSanitizer,
    subject: str | None,
    folder: str,
    partition: int,
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
            if tally is not None:
                tally.add(batch)
            rows += batch.num_rows
            yield kernel(batch, schema, rng)

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
            f"a worker cannot write reports ({error.strerror or type(error).__name__}); nothing was"
            " released"
        ) from None
    return Part(name, rows, {} if tally is None else tally.counts)


def materialised(
    output: Path, ledger: Ledger | None, attempt_all: Callable[[str], Iterable[Part | None]]
) -> None:
    """Run the attempts in a hidden folder, choose, charge, and give the output its name."""
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
            attempts = place.folder / f"attempts-{uuid.uuid4().hex}"
            attempts.mkdir()
            parts = [part for part in attempt_all(str(attempts)) if part is not None]
            if not parts:
                raise InvalidInput("the frame has no rows, so nothing is released")
            place.staged.mkdir()
            counts: dict[tuple[str, float], int] = {}
            for part in parts:
                (attempts / part.name).replace(place.staged / part.name)
                for key, times in part.counts.items():
                    counts[key] = counts.get(key, 0) + times
            place.commit(uuid.uuid4().hex, sum(part.rows for part in parts), counts, ledger)
    except OSError as error:
        if isinstance(error, NotWritten):
            raise
        raise NotWritten(
            f"the output {output.name} cannot be written ({error.strerror}); nothing was released"
        ) from None


@contextlib.contextmanager
def withheld(engine: str) -> Iterator[None]:
    """Around an engine's work on true locations: only our own sentences come out of it.

    Any other message, of a task, a parser or a cast, may quote a location.
    """
    try:
        yield
    except WhereishError:
        raise
    except Exception as error:
        raise _told(engine, error) from None


def _told(engine: str, error: Exception) -> WhereishError:
    """Our own sentence from a task that failed elsewhere, if there is one in the message."""
    from whereish import errors

    found = _OURS.search(str(error))
    kind = getattr(errors, found[1], None) if found else None
    if found and isinstance(kind, type) and issubclass(kind, WhereishError):
        return (NotWritten if kind is NotWritten else InvalidInput)(found[2].strip())
    return InvalidInput(
        f"the {engine} job failed ({type(error).__name__}), so nothing is released; its message is"
        " withheld, since it may quote a location: compute the frame by itself to see it"
    )


def read_back(output: str, read: Callable[[str], Any]) -> Any:
    """The frame that reads a released output; its failure does not undo the release."""
    try:
        return read(output)
    except Exception as error:
        name = output.rstrip("/").rpartition("/")[2]
        raise NotFinished(
            f"the output {name} was released, and charged if a ledger was given, but reading it"
            f" back failed ({type(error).__name__}): read it from its folder"
        ) from error
