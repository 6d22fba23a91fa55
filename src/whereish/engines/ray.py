"""Sanitising Ray datasets: written once (:mod:`whereish.engines.attempts`), then read.

Each block of the dataset is attempted by a task of its own, whose value, one part, is
fetched once: whatever Ray runs again, one attempt per block is released.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from whereish.engines.attempts import Attempt, Part
from whereish.engines.engine import EngineSanitizer
from whereish.errors import import_extra
from whereish.publish.formats.tables import BATCH_ROWS

__all__ = ["sanitize"]


class RayEngine:
    """One task per block."""

    name = "Ray"

    def columns(self, frame: Any) -> Sequence[str]:
        import_extra("ray.data", "ray")
        with _silence_data_loggers():
            return list(frame.columns() or ())

    def run(self, frame: Any, columns: Sequence[str], attempt: Attempt) -> Sequence[Part | None]:
        import ray

        task = ray.remote(_attempt_block)
        at_once = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))
        tasks: list[Any] = []
        running: list[Any] = []
        with _silence_data_loggers():
            for bundle in frame.select_columns(list(columns)).iter_internal_ref_bundles():
                for block in bundle.block_refs:
                    if len(running) >= at_once:  # so that blocks do not pile up, and spill to disk
                        _, running = ray.wait(running)
                    tasks.append(task.remote(block, len(tasks), attempt))
                    running.append(tasks[-1])
            parts: list[Part | None] = ray.get(tasks)
        return parts

    def read(self, folder: Path, like: Any) -> Any:
        import ray.data

        return ray.data.read_parquet(str(folder))


def _attempt_block(block: Any, number: int, attempt: Attempt) -> Part | None:
    from ray.data.block import BlockAccessor

    return attempt(BlockAccessor.for_block(block).to_arrow().to_batches(BATCH_ROWS), number)


@contextlib.contextmanager
def _silence_data_loggers() -> Iterator[None]:
    """Around work on true locations: Ray Data logs the error of a task, which may quote one.

    It does so on the driver, to its terminal and to the session's files.
    """

    def harmless(record: logging.LogRecord) -> bool:
        return record.levelno < logging.WARNING

    names = ("ray.data", "ray")
    handlers = [handler for name in names for handler in logging.getLogger(name).handlers]
    for handler in handlers:
        handler.addFilter(harmless)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(harmless)


sanitize = EngineSanitizer(RayEngine()).sanitize
