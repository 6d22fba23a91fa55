"""The Dockerfile's own steps in a fresh folder, where there is no engine to build it.

``python -m stress.image`` copies what .dockerignore lets through, runs the RUN lines with the
image's folders below that folder, and starts ENTRYPOINT and CMD as the image's user, whose home
does not exist, with the environment of compose.yaml and a real PostgreSQL.  What it cannot try is
the engine itself: base images, volumes, networks.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.measure import Bars

ROOT = Path(__file__).parents[1]
FOLDERS = ("/src", "/opt/whereish", "/etc/whereish", "/var/lib/whereish")
_SYSTEM = ("useradd",)
"""What changes this machine instead of an image: not run."""


@dataclass
class Image:
    """Stages of a Dockerfile, run below a folder."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)
    user: int = 0
    entry: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    folder: str = "/"
    seconds: dict[str, float] = field(default_factory=dict)

    def below(self, text: str) -> str:
        """The same with the image's folders below ours."""
        return re.sub(rf"(?<![\w.])({'|'.join(FOLDERS)})\b", rf"{self.root}\1", text)

    def build(self, path: Path) -> None:
        """Run every instruction in order."""
        for name, rest in instructions(path.read_text()):
            step = getattr(self, f"_{name.lower()}", None)
            if step is not None:
                step(rest)

    def start(self, log: Path, **more: str) -> subprocess.Popen[bytes]:
        """The image's process, as its user."""
        words = [self.below(word) for word in [*self.entry, *self.command]]
        environment = {**self.environment, "HOME": "/nonexistent", **more}
        path = f"{self.below('/opt/whereish')}/bin:{os.environ['PATH']}"
        whose = {"user": self.user, "group": self.user} if os.getuid() == 0 else {}
        with log.open("ab") as output:
            return subprocess.Popen(
                words,
                cwd=self.below(self.folder),
                env={**environment, "PATH": path},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                executable=f"{self.below('/opt/whereish')}/bin/{words[0]}",
                **whose,
            )

    def _workdir(self, rest: str) -> None:
        self.folder = rest
        Path(self.below(rest)).mkdir(parents=True, exist_ok=True)

    def _env(self, rest: str) -> None:
        pairs = (word.partition("=") for word in shlex.split(rest))
        self.environment |= {name: value for name, _, value in pairs if name != "PATH"}

    def _copy(self, rest: str) -> None:
        *sources, target = shlex.split(rest)
        if sources[0].startswith("--from="):
            return  # both stages lie below one folder
        into = Path(self.below(self.folder)) / target if target.startswith(".") else None
        for source in sources:
            here = ROOT / source
            there = into or Path(self.below(target))
            if here.is_dir():
                shutil.copytree(here, there, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                if into is None:
                    there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(here, there)

    def _run(self, rest: str) -> None:
        steps = [step for step in rest.split("&&") if step.split()[0] not in _SYSTEM]
        words = " && ".join(steps).strip()
        began = time.perf_counter()
        subprocess.run(
            ["/bin/sh", "-ec", self.below(words)],
            cwd=self.below(self.folder) if self.folder != "/" else self.root,
            env={**self.environment, "PATH": f"{self._python()}:{os.environ['PATH']}"},
            check=True,
            stdout=subprocess.DEVNULL,
        )
        self.seconds[words[:60]] = time.perf_counter() - began

    def _python(self) -> Path:
        """A folder with a `python` that other users can run, as that of a base image."""
        folder = self.root / "bin"
        folder.mkdir(exist_ok=True)
        link = folder / "python"
        if not link.is_symlink():
            own = Path(sys.executable).resolve()
            open_to_all = all(p.stat().st_mode & 0o001 for p in own.parents)
            link.symlink_to(own if open_to_all else "/usr/bin/python3")
        return folder

    def _user(self, rest: str) -> None:
        self.user = int(rest)

    def _entrypoint(self, rest: str) -> None:
        self.entry = json.loads(rest)

    def _cmd(self, rest: str) -> None:
        self.command = json.loads(rest)


def instructions(text: str) -> list[tuple[str, str]]:
    """Name and arguments of each instruction; lines that go on are joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    whole = "\n".join(lines).replace("\\\n", " ")
    return [
        (name, rest)
        for name, _, rest in (line.partition(" ") for line in whole.split("\n") if line)
    ]


def ask(port: int, path: str, token: str = "", body: object = None) -> dict:
    """One request; the answer must be JSON and well."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())


def main() -> list[str]:
    sys.path.insert(0, str(ROOT / "tests"))
    import postgres
    import service_process

    bars = Bars("the image's steps in a fresh folder")
    with tempfile.TemporaryDirectory(prefix="whereish-image-") as name:
        image = Image(Path(name))
        image.root.chmod(0o755)
        image.build(ROOT / "Dockerfile")
        for step, seconds in image.seconds.items():
            bars.note(step, f"{seconds:10.0f} s")
        size = sum(p.lstat().st_size for p in Path(image.below("/opt/whereish")).rglob("*"))
        bars.note("the folder that the image gets", f"{size / 1e6:10.0f} MB")
        with postgres.server() as address:
            # Its socket is in a folder of its own, which the image's user must be able to enter.
            Path(re.findall(r"host=([^&]+)", address)[0]).chmod(0o711)
            serve(bars, image, address, service_process.free_port())
    return bars.failed


def serve(bars: Bars, image: Image, address: str, port: int) -> None:
    """Start, ask, stop: as compose.yaml would, with another address of the database."""
    log = image.root / "log"
    config = Path(image.below("/etc/whereish/service.toml"))
    config.write_text(image.below(config.read_text()))  # its state folder lies below ours, too
    began = time.perf_counter()
    process = image.start(
        log,
        WHEREISH_SERVE_LEDGER__ADDRESS=address,
        WHEREISH_SERVE_PORT=str(port),
        WHEREISH_COMPILE="refuse",
    )
    try:
        answered = False
        while not answered and process.poll() is None and time.perf_counter() - began < 120:
            try:
                answered = ask(port, "/healthz")["status"] == "ok"
            except OSError:
                time.sleep(0.1)
        bars.note("until /healthz answers", f"{time.perf_counter() - began:10.1f} s")
        bars.at_most("starts that failed", int(not answered), 0, "")
        if not answered:
            print(log.read_text())
            return
        token = re.findall(r"first token, shown this once: (\S+)", log.read_text())[0]
        report = ask(port, "/v1/report", token, {"lon": 2.33316, "lat": 48.85412, "subject": "ann"})
        left = ask(port, "/v1/budget/ann", token)["left_per_m"]
        bars.at_most("reports that were not charged", int(not report["charged"]), 0, "")
        bars.note("budget that is left", f"{left:10.4f} /m")
        written = [
            p for p in Path(image.below("/opt/whereish")).rglob("*") if _owned(p, image.user)
        ]
        bars.at_most("files of the package that its user could write", len(written), 0, "")
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        bars.note("status after SIGTERM", f"{process.wait(60):10d}")


def _owned(path: Path, user: int) -> bool:
    status = path.lstat()
    return user != 0 and (
        status.st_uid == user or bool(status.st_mode & 0o002 and not path.is_symlink())
    )


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
