"""What the views share: mechanisms that were built or loaded, jobs, uploads, and the base map."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from whereish.errors import InvalidInput
from whereish.interfaces.http.problems import Problem
from whereish.interfaces.workbench.jobs import Jobs
from whereish.interfaces.workbench.uploads import Scratch

__all__ = ["Bench", "Shelved"]


class Shelved(NamedTuple):
    """A mechanism that other views may use."""

    id: str
    kind: str
    title: str
    mechanism: Any


@dataclass
class Bench:
    """The state of one server; all of it is in memory but the uploads."""

    scratch: Scratch
    jobs: Jobs = field(default_factory=Jobs)
    base_map: Path | None = None
    shelf: dict[str, Shelved] = field(default_factory=dict)
    samplers: dict[str, str] = field(default_factory=dict)
    """Functions to audit that the terminal named: their names, and FILE.py:NAME."""

    def put(self, kind: str, title: str, mechanism: Any, name: str | None = None) -> Shelved:
        """Put a mechanism on the shelf."""
        made = Shelved(name or secrets.token_hex(6), kind, title, mechanism)
        self.shelf[made.id] = made
        while len(self.shelf) > 20:
            del self.shelf[next(iter(self.shelf))]
        return made

    def take(self, name: str) -> Shelved:
        """The mechanism of this name."""
        if name not in self.shelf:
            raise Problem("not-found", "this mechanism is not here any more: build it again")
        return self.shelf[name]

    def listed(self) -> list[dict[str, str]]:
        """What is on the shelf, as the page shows it."""
        return [{"id": one.id, "kind": one.kind, "title": one.title} for one in self.shelf.values()]

    def close(self) -> None:
        """Stop all work and remove all files."""
        self.jobs.close()
        self.scratch.close()


def degrees_space(mechanism: Any) -> Any:
    """The space of a mechanism if it knows degrees; a plane without a place is refused."""
    space = mechanism.space
    if not hasattr(space, "from_degrees") or getattr(space, "crs", "sphere") is None:
        raise InvalidInput(
            "this mechanism is on a plane without a coordinate system, so it has no place on the"
            " map: build it on wh.Plane.around(lon, lat, radius)"
        )
    return space
