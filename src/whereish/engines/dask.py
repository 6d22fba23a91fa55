"""Sanitising Dask data frames: written once (:mod:`whereish.engines.attempts`), then read.

>>> import tempfile
>>> import dask.dataframe as dd
>>> import whereish as wh
>>> frame = dd.from_dict({"lon": [2.35, 2.36], "lat": [48.85, 48.86]}, npartitions=1)
>>> with tempfile.TemporaryDirectory() as folder:
...     released = wh.dask.sanitize(
...         frame, f"{folder}/out", lon="lon", lat="lat", epsilon="ln(4)/200 m"
...     )
...     len(released)
...
2
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from whereish.engines.attempts import Attempt, Part
from whereish.engines.engine import EngineSanitizer
from whereish.errors import InvalidInput, import_extra
from whereish.publish.formats.tables import BATCH_ROWS

__all__ = ["sanitize"]


class DaskEngine:
    """One delayed attempt per partition."""

    name = "Dask"

    def columns(self, frame: Any) -> Sequence[str]:
        import_extra("dask.dataframe", "dask")
        return list(frame.columns)

    def run(self, frame: Any, columns: Sequence[str], attempt: Attempt) -> Sequence[Part | None]:
        import dask

        task = dask.delayed(_attempt_partition, pure=False)
        parts = enumerate(frame[list(columns)].to_delayed())
        computed: tuple[Part | None, ...] = dask.compute(*(task(p, i, attempt) for i, p in parts))
        return computed

    def read(self, folder: Path, like: Any) -> Any:
        import dask.dataframe

        return dask.dataframe.read_parquet(str(folder))


def _attempt_partition(frame: Any, index: int, attempt: Attempt) -> Part | None:
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError):
        raise InvalidInput("the frame has a column whose values are of mixed types") from None
    return attempt(table.to_batches(BATCH_ROWS), index)


sanitize = EngineSanitizer(DaskEngine()).sanitize
