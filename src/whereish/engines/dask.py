"""Sanitising Dask data frames: drawn once, then read from what was drawn.

Dask re-runs tasks: on a lost worker, on a retry, and on every ``compute`` of a lazy
frame.  If the reports themselves were lazy, each run would draw new noise, and two
runs together would tell more than was promised.  So nothing lazy is handed out:

* every *attempt* at a partition draws fresh noise and writes it to a file of its own,
  in the job's hidden folder, where no reader looks;
* one attempt per partition is *chosen*: the one whose name the scheduler returned.
  The files of all other attempts are destroyed before anything is visible;
* the folder is then renamed to `output` in one step (charging a ledger before), and
  the frame that is returned reads those files, however often it is computed.

So a record has one report that anybody can see, whatever the scheduler did.  The
alternative, noise keyed by (job secret, record id) with a pseudorandom function, needs
a unique id in every row, which most data lacks, and repeats the noise where ids repeat;
materialising needs none, and holds for every mechanism.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa

from whereish.errors import InvalidInput, MissingExtra, NotWritten
from whereish.publish.kernel import BatchSanitizer, Plan, planned
from whereish.publish.ledger import Ledger
from whereish.publish.staging import staging
from whereish.publish.subjects import Tally
from whereish.publish.tables import BATCH_ROWS, Writing, check_columns, write_table
from whereish.randomness import secure

__all__ = ["sanitize"]


@dataclass(frozen=True)
class _Part:
    """One attempt at a partition: the file it wrote, and who is in it."""

    name: str
    rows: int
    counts: dict[tuple[str, float], int]


def sanitize(
    frame: Any,
    output: str | Path,
    *,
    ledger: Ledger | None = None,
    subject: str | None = None,
    **plan: Unpack[Plan],
) -> Any:
    """Blur the locations of a Dask data frame into a new folder of Parquet files.

    Parameters
    ----------
    frame
        A Dask data frame; it is computed once, now.
    output
        A folder that does not exist yet, on a disk that all workers share.
    ledger, subject
        As in :func:`whereish.sanitize`.
    **plan
        See :class:`~whereish.publish.kernel.Plan`.

    Returns
    -------
    A Dask data frame that reads `output`.
    """
    try:
        import dask
        import dask.dataframe as dd
    except ImportError:
        raise MissingExtra("dask", "dask") from None
    if (ledger is None) != (subject is None):
        raise InvalidInput(
            "ledger and subject belong together: the column of whom to charge, and where"
        )
    output = Path(output)
    kernel = planned(plan)
    wanted = list(dict.fromkeys((*kernel.columns, *(() if subject is None else (subject,)))))
    check_columns("frame", [str(name) for name in frame.columns], wanted)
    try:
        with staging(output) as place:
            if place.unfinished() is not None or output.exists():
                raise InvalidInput(f"the output {output.name} exists already: choose another name")
            place.empty()
            folder = place.staged
            folder.mkdir()
            attempts = [
                dask.delayed(_attempt, pure=False)(part, index, kernel, subject, str(folder))
                for index, part in enumerate(frame[wanted].to_delayed())
            ]
            parts: list[_Part] = [part for part in dask.compute(*attempts) if part is not None]
            chosen = {part.name for part in parts}
            for path in folder.iterdir():
                if path.name not in chosen:
                    path.unlink()
            if not parts:
                raise InvalidInput("the frame has no rows, so nothing is released")
            counts: dict[tuple[str, float], int] = {}
            for part in parts:
                for key, times in part.counts.items():
                    counts[key] = counts.get(key, 0) + times
            place.commit(uuid.uuid4().hex, sum(part.rows for part in parts), counts, ledger)
    except OSError as error:
        if error.errno is None:  # not the disk's: a task of the frame itself failed
            raise
        raise NotWritten(
            f"the output {output.name} cannot be written"
            f" ({error.strerror or type(error).__name__}); nothing was released"
        ) from None
    return dd.read_parquet(output)


def _attempt(
    frame: Any, index: int, kernel: BatchSanitizer, subject: str | None, folder: str
) -> _Part | None:
    """Draw the reports of one partition into a file that no other attempt writes."""
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError):
        raise InvalidInput("the frame has a column whose values are of mixed types") from None
    if len(table) == 0:
        return None
    rng = secure()
    schema = kernel.schema(table.schema)
    statement = kernel.statement(reproducible=rng.reproducible)
    tally = None if subject is None else Tally(kernel, subject)
    name = f"part-{index:05d}-{uuid.uuid4().hex}.parquet"

    def reports() -> Iterator[pa.RecordBatch]:
        for batch in table.to_batches(BATCH_ROWS):
            if tally is not None:
                tally.add(batch)
            yield kernel(batch, schema, rng)

    partial = Path(folder) / name
    geometry = kernel.geometry()
    writing = Writing(schema, statement, None if geometry is None else geometry.name)
    write_table(partial, writing, reports())
    return _Part(name, len(table), {} if tally is None else tally.counts)
