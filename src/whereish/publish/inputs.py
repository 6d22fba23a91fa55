"""Which files a release reads: one, the tables of a folder, those of a pattern, or a list.

Files of several keep their names below a common folder.  A folder name `key=value` (Hive's
partitions) is a value of a column: it leaves in the output's folder names only if `keep` names
that column.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from os.path import commonpath
from pathlib import Path

from whereish.errors import InvalidInput
from whereish.publish.formats.registry import ending_of, suffixes
from whereish.publish.formats.tables import absent

__all__ = ["Inputs", "refuse_address"]

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/{1,2}[^/]")
_PARTITION = re.compile(r"([^=]+)=.*")


@dataclass(frozen=True)
class Inputs:
    """The files of a release, in the order of their names, below `root`.

    `many` says that the output is a folder, with a file for each.
    """

    root: Path
    files: tuple[Path, ...]
    many: bool

    @classmethod
    def of(cls, source: str | Path | Sequence[str | Path]) -> Inputs:
        """From a path, a pattern such as "trips-*.csv", or a list of paths.

        Raises
        ------
        InvalidInput
            If nothing is there, or something that is no table.
        """
        if not isinstance(source, str | Path):
            return cls._listed([Path(refuse_address(path, "input")) for path in source])
        path = Path(refuse_address(source, "input"))
        if path.is_dir():
            return cls(path, tuple(_tables_in(path)), True)
        if path.exists():
            return cls(path.parent, (path,), False)
        if not glob.has_magic(str(path)):
            raise InvalidInput(absent(path))
        below = Path(*takewhile(lambda part: not glob.has_magic(part), path.parts[:-1]))
        found = sorted(below.glob(str(path.relative_to(below))))
        if not found:
            raise InvalidInput(f"no file matches the pattern {path.name}")
        return cls._listed(found)

    @classmethod
    def _listed(cls, paths: Sequence[Path]) -> Inputs:
        missing = [path for path in paths if not path.exists()]
        if missing:
            raise InvalidInput(absent(missing[0]))
        if len(paths) == 1 and not paths[0].is_dir():
            return cls(paths[0].parent, (paths[0],), False)
        files = [file for path in paths for file in (_tables_in(path) if path.is_dir() else [path])]
        _refuse_strange(files, "the inputs have")
        if len({path.resolve() for path in files}) < len(files):
            raise InvalidInput("the inputs name a file twice, which would be released twice")
        root = Path(commonpath([path.resolve().parent for path in files]))
        return cls(root, tuple(sorted(path.resolve() for path in files)), True)

    @property
    def name(self) -> str:
        """What messages call them."""
        return self.files[0].name if not self.many else self.root.name

    def relative(self, path: Path) -> Path:
        """The name of a file below the output."""
        return path.relative_to(self.root)

    def partitions(self, path: Path) -> tuple[str, ...]:
        """The columns whose values are in the names of the folders of a file."""
        found = (_PARTITION.fullmatch(part) for part in self.relative(path).parts[:-1])
        return tuple(match[1] for match in found if match)

    def check_partitions(self, keep: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
        """The columns in names of folders, if all of them are kept as they are."""
        keys = self.partitions(self.files[0])
        if any(self.partitions(path) != keys for path in self.files):
            raise InvalidInput("all files must be in folders of the same partitions, key=value")
        missing = [key for key in keys if key not in keep]
        if missing:
            raise InvalidInput(
                f"the folders' names hold values of the column {missing[0]!r}, which would be"
                f" released with them: name it in keep (--keep {missing[0]}), or release the files"
                " from folders of other names"
            )
        used = [key for key in keys if key in others]
        if used:
            raise InvalidInput(
                f"the column {used[0]!r} is in the folders' names, where it can be kept only: write"
                " it into the files to use it otherwise"
            )
        return keys


def refuse_address(path: str | Path, what: str) -> str | Path:
    """A path of this machine's file systems; an address of another is refused, with the reason."""
    if isinstance(path, str) and _ADDRESS.match(path):
        scheme = path.partition(":")[0]
        raise InvalidInput(
            f"the {what} must be on a file system of this machine; got an address {scheme}://. A"
            " release must find the same bytes again after a crash, and give its output a name in"
            " one step, which object stores and web servers do not do: copy the file first (such as"
            " aws s3 cp, gsutil cp, curl -O), or use Spark, Dask or Ray where the data is"
        )
    return path


def _tables_in(folder: Path) -> list[Path]:
    """The tables of a folder in the order of their names."""
    files = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not any(part.startswith(("_", ".")) for part in path.relative_to(folder).parts)
    ]
    tables = [path for path in files if not path.name.endswith(".whereish.json")]
    _refuse_strange(tables, f"the folder {folder.name} has")
    if not tables:
        raise InvalidInput(f"the folder {folder.name} has no tables in it")
    return tables


def _refuse_strange(paths: Sequence[Path], who: str) -> None:
    known = suffixes(read=True)
    strange = [path.name for path in paths if ending_of(path) not in known]
    if strange:
        raise InvalidInput(
            f"{who} {len(strange)} files that are no tables, such as {strange[0]}: they must end in"
            f" one of {', '.join(known)}"
        )
