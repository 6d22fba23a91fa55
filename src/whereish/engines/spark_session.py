"""What every Spark job of ours minds: loggers that quote values, addresses that are patterns."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

from whereish.engines.engine import hide_engine_errors
from whereish.errors import InvalidInput

__all__ = ["NAME", "hide_spark_errors", "refuse_patterns"]

NAME = "Spark"
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


@contextlib.contextmanager
def hide_spark_errors() -> Iterator[None]:
    """Around actions on true locations: neither Spark's errors nor its Python loggers quote them.

    PySpark writes the message of a failed query to the driver's terminal, whatever Spark's
    log level is.
    """
    from pyspark.logger import PySparkLogger

    def silent(_: logging.LogRecord) -> bool:
        return False

    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(silent)
    try:
        with hide_engine_errors(NAME):
            yield
    finally:
        for logger in loggers:
            logger.removeFilter(silent)


def refuse_patterns(address: str) -> None:
    """Spark reads these characters as a pattern, so it could not read the output back."""
    found = [character for character in "*?[]{}\\" if character in address]
    if found:
        raise InvalidInput(
            f"the output of a Spark job must have no {' or '.join(found)} in its address, which"
            " Spark would read as a pattern: choose another name"
        )
