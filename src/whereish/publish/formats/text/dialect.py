"""How a text table is written: what stands between columns, the decimal mark, the encoding.

What is not declared is found from the first block of the file, and said: from its byte-order
mark, from which bytes are no UTF-8, from the marks in its header, and from columns that must
hold numbers.  A file that does not keep to what its first block shows is refused, never guessed
at again.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from whereish.errors import InvalidInput

__all__ = ["PEEK_BYTES", "Dialect", "dialect_of", "found_dialect"]

PEEK_BYTES = 1 << 18
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "blanks"}
_COMMA_NUMBER = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True)
class Dialect:
    """What is declared of a text table; None is found from the file.

    Parameters
    ----------
    delimiter
        One character between columns.
    decimal
        "." or ",".
    encoding
        A name that Python knows, such as "latin-1".
    """

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        given = self.delimiter
        if given in ("tab", "\\t"):
            object.__setattr__(self, "delimiter", "\t")
        elif given is not None and len(given) != 1:
            raise InvalidInput(f"delimiter must be one character, or 'tab'; got {given!r}")
        if self.decimal not in (None, ".", ","):
            raise InvalidInput(f"decimal must be '.' or ','; got {self.decimal!r}")
        if self.decimal == "," == self.delimiter:
            raise InvalidInput("delimiter and decimal must not both be a comma")
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except LookupError:
                raise InvalidInput(
                    "encoding must be one that Python knows, such as 'utf-8' or 'latin-1'; got"
                    f" {self.encoding!r}"
                ) from None

    @property
    def usual(self) -> bool:
        """Whether nothing is to be said of it."""
        plain = (self.encoding or "utf-8").lower().replace("_", "-") in ("utf-8", "utf8")
        return self.delimiter in (",", "\t") and self.decimal == "." and plain

    def __str__(self) -> str:
        between = _DELIMITERS.get(self.delimiter or ",", repr(self.delimiter))
        decimal = "decimal commas" if self.decimal == "," else "decimal points"
        return f"{between} between columns, {decimal}, {self.encoding}"


def found_dialect(
    path: Path, declared: Dialect, usual: str, numbers: Sequence[str] = ()
) -> Dialect:
    """The dialect of a file: what is declared, and for the rest what its first block shows.

    `usual` is the delimiter of its format, and `numbers` the columns that must hold numbers.
    """
    return dialect_of(_head(path), path.name, declared, usual, numbers)


def dialect_of(
    head: bytes, name: str, declared: Dialect, usual: str, numbers: Sequence[str] = ()
) -> Dialect:
    """The dialect of text that begins with `head`; `name` is what messages call it."""
    encoding = declared.encoding or _encoding(head)
    try:
        text = codecs.getincrementaldecoder(encoding)("strict").decode(head)
    except (UnicodeDecodeError, LookupError):
        raise InvalidInput(
            f"the input {name} cannot be read as {encoding}: say its encoding (encoding, or"
            " --encoding), such as latin-1"
        ) from None
    text = text.removeprefix("\ufeff")
    delimiter = declared.delimiter or _delimiter(text, usual)
    decimal = declared.decimal
    if decimal is None:
        decimal = "," if delimiter != "," and _decimal_commas(text, delimiter, numbers) else "."
    return replace(declared, delimiter=delimiter, decimal=decimal, encoding=encoding)


def _head(path: Path) -> bytes:
    """The first block; of a compressed file that is damaged, what there is."""
    if path.suffix == ".gz":
        try:
            with gzip.open(path, "rb") as file:
                return file.read(PEEK_BYTES)
        except (OSError, EOFError):
            raise InvalidInput(
                f"the input {path.name} cannot be read as gzip: is it damaged?"
            ) from None
    with path.open("rb") as file:
        return file.read(PEEK_BYTES)


def _encoding(head: bytes) -> str:
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name
    try:
        codecs.getincrementaldecoder("utf-8")("strict").decode(head)
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def _delimiter(text: str, usual: str) -> str:
    """The usual one where the header has it; else the one that it has most often."""
    header = re.sub(r'"[^"]*"', "", text.partition("\n")[0])
    counts = {mark: header.count(mark) for mark in (usual, ",", ";", "\t", "|")}
    best = max(counts, key=lambda mark: counts[mark])
    return best if counts[best] > counts[usual] else usual


def _decimal_commas(text: str, delimiter: str, numbers: Sequence[str]) -> bool:
    """Whether the first rows have decimal commas in a column that must hold numbers."""
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    try:
        header = next(reader)
        columns = [header.index(name) for name in numbers if name in header]
        rows = [row for _, row in zip(range(50), reader, strict=False)]
    except (StopIteration, csv.Error):
        return False
    cells = [row[i].strip() for row in rows for i in columns if i < len(row)]
    return any(_COMMA_NUMBER.fullmatch(cell) for cell in cells)
