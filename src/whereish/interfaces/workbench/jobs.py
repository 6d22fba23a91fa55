"""Long work in a process of its own: progress while it runs, its result afterwards.

A process leaves the page answering while a solver works, can be stopped at once, and ends with
the server: it watches the pipe that the server holds, and a killed server closes it.  Results stay
in the server's memory until it ends, so a page that is loaded again finds them.
"""

from __future__ import annotations

import multiprocessing
import os
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from typing import Any, Final, Literal

from whereish.errors import InvalidInput, WhereishError, printable
from whereish.interfaces.http.problems import Problem

__all__ = ["Job", "Jobs", "Work"]

Work = Callable[..., Any]
"""``work(progress, *arguments)``: a function of a module, which calls ``progress(dict)``."""
MOST_RUNNING: Final = 2
_MOST_KEPT: Final = 40
_QUICK: Final = "forkserver" in multiprocessing.get_all_start_methods()
_CONTEXT: Final[Any] = multiprocessing.get_context("forkserver" if _QUICK else "spawn")

State = Literal["running", "done", "failed", "stopped"]


@dataclass
class Job:
    """One piece of work."""

    id: str
    kind: str
    title: str
    started: float = field(default_factory=time.time)
    state: State = "running"
    progress: list[dict[str, Any]] = field(default_factory=list)
    error: str = ""
    result: Any = field(default=None, repr=False)
    seconds: float = 0.0

    def status(self, since: int = 0) -> dict[str, Any]:
        """What the page polls: the progress from entry `since` on."""
        spent = self.seconds if self.state != "running" else time.time() - self.started
        return {
            "id": self.id,
            "kind": self.kind,
            "title": self.title,
            "state": self.state,
            "error": self.error,
            "seconds": round(spent, 2),
            "entries": len(self.progress),
            "progress": self.progress[since:],
        }


class Jobs:
    """All work of one server."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._processes: dict[str, Any] = {}
        self._lock = threading.Lock()
        if _QUICK:  # a process that has everything imported, and is copied for each job
            _CONTEXT.set_forkserver_preload(["whereish.interfaces.workbench.app"])
            forkserver.ensure_running()

    def start(
        self,
        kind: str,
        title: str,
        work: Work,
        *arguments: Any,
        finish: Callable[[Job], None] | None = None,
    ) -> Job:
        """Begin; `finish` is called in the server with the job whose result has come."""
        with self._lock:
            if len(self._processes) >= MOST_RUNNING:
                raise InvalidInput(
                    f"{MOST_RUNNING} builds are under way: wait for one, or stop one first"
                )
            for old in [job for job in self._jobs.values() if job.state != "running"]:
                if len(self._jobs) >= _MOST_KEPT:
                    del self._jobs[old.id]
            job = Job(secrets.token_hex(8), kind, title)
            ours, theirs = _CONTEXT.Pipe()
            process = _CONTEXT.Process(target=_run, args=(theirs, work, arguments), daemon=True)
            process.start()
            theirs.close()
            self._jobs[job.id], self._processes[job.id] = job, process
        threading.Thread(
            target=self._follow, args=(job, process, ours, finish), daemon=True
        ).start()
        return job

    def get(self, name: str, kind: str | None = None) -> Job:
        """The job of this name."""
        job = self._jobs.get(name)
        if job is None or (kind is not None and job.kind != kind):
            raise Problem("not-found", "this build is not here any more: start it again")
        return job

    def result(self, name: str, kind: str) -> Any:
        """The result of a job that is done."""
        job = self.get(name, kind)
        if job.state != "done":
            raise Problem("invalid", "this build is not finished")
        return job.result

    def all(self) -> list[Job]:
        """All that are known, the latest last."""
        return list(self._jobs.values())

    def stop(self, name: str) -> None:
        """Stop it at once; what it had is gone."""
        job = self.get(name)
        with self._lock:
            process = self._processes.get(name)
            if process is not None and job.state == "running":
                job.state = "stopped"
                process.kill()

    def close(self) -> None:
        """Stop all."""
        for job in self.all():
            self.stop(job.id)

    def _follow(
        self, job: Job, process: Any, ours: Connection, finish: Callable[[Job], None] | None
    ) -> None:
        said: tuple[str, Any] = ("failed", "the build ended without a result")
        try:
            while True:
                said = ours.recv()
                if said[0] != "progress":
                    break
                job.progress.append(said[1])
        except (EOFError, OSError):
            pass
        process.join(timeout=10)
        ours.close()
        with self._lock:
            self._processes.pop(job.id, None)
            job.seconds = time.time() - job.started
            if job.state == "stopped":
                return
        if said[0] == "done":
            job.result = said[1]
            try:
                if finish is not None:
                    finish(job)
            except WhereishError as error:
                said = ("failed", printable(str(error)))
        job.error = "" if said[0] == "done" else str(said[1])
        job.state = "done" if said[0] == "done" else "failed"


def _run(theirs: Connection, work: Work, arguments: tuple[Any, ...]) -> None:
    """In the process: work, and end when nobody listens any more."""
    if hasattr(os, "nice"):
        os.nice(5)
    threading.Thread(target=_watch, args=(theirs,), daemon=True).start()
    try:
        said = ("done", work(lambda told: theirs.send(("progress", told)), *arguments))
    except WhereishError as error:
        said = ("failed", printable(str(error)))
    except Exception as error:  # its words may quote a place
        said = ("failed", f"internal error ({type(error).__name__}); please report it")
    theirs.send(said)


def _watch(theirs: Connection) -> None:
    """The server never sends: what arrives is its end."""
    try:
        theirs.recv()
    except (EOFError, OSError):
        pass
    finally:
        os._exit(0)
