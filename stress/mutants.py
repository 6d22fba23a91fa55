"""Faults put into the numerics on purpose, and whether the nearest tests see them.

    python -m stress.mutants [--only PATTERN] [--jobs N] [--seen] [--list]

Each mutant of :mod:`stress.mutant_tables` changes one text in one file of a temporary copy
of the tree (the working tree is never touched) and runs its nearest tests there.  Before,
all of these tests must pass in an unchanged copy, none of them skipped; its compiled
kernels serve the mutants of modules that compile nothing.  A mutant is killed when a test
fails or takes more than `CPU_LIMIT_S` seconds.

Exits with 1 when fewer than 90% are killed, with 2 when a mutant is stale or could not be
judged.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from stress.mutant import Mutant, Stale
from stress.mutant_tables import MUTANTS

__all__ = ["main"]

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("src", "tests", "benchmarks", "stress", "scripts", "docs", "pyproject.toml")
"""What the tests read."""

LEAST_KILLED = 0.9
CPU_LIMIT_S = 600
_PASSED, _FAILED = 0, 1  # pytest's exit codes
_BROKEN = ("AttributeError", "ImportError", "LoweringError", "NameError", "TypingError")
"""Errors of a mutant that does not run at all, which is no fault that a test sees."""


class Undecided(Exception):
    """Tests that neither passed nor failed."""


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant."""

    mutant: Mutant
    killed: bool
    cpu_s: float
    seen: str = ""
    """How the test failed."""


def copy_tree(source: Path, target: Path) -> None:
    """Copy what the tests need, with its caches; dates are kept, by which caches are valid."""
    for name in COPIED:
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name)
        elif (source / name).exists():
            shutil.copy2(source / name, target / name)


def run_tests(tree: Path, tests: Sequence[str]) -> tuple[int, str, float]:
    """Exit code and output of pytest in `tree`, and the CPU seconds it took."""
    environment = os.environ | {
        "PYTHONPATH": str(tree / "src"),
        "OPENBLAS_NUM_THREADS": "1",
        "WHEREISH_DATA": os.environ.get("WHEREISH_DATA", str(ROOT.parent / "shared" / "data")),
    }
    # Examples of Hypothesis are the same in every run, so that a verdict is, too.
    options = ["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
    with tempfile.TemporaryFile() as told:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *dict.fromkeys(tests)],
            cwd=tree,
            env=environment,
            stdout=told,
            stderr=subprocess.STDOUT,
        )
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (CPU_LIMIT_S, CPU_LIMIT_S))
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        told.seek(0)
        output = told.read().decode(errors="replace")
    return process.returncode, output, used.ru_utime + used.ru_stime


def check_unchanged(tree: Path, mutants: Sequence[Mutant]) -> float:
    """Run all nearest tests on the unchanged copy; raise `Undecided` unless all pass."""
    where = subprocess.run(
        [sys.executable, "-c", "import whereish; print(whereish.__file__)"],
        env=os.environ | {"PYTHONPATH": str(tree / "src")},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    if not Path(where.strip()).is_relative_to(tree):
        raise Undecided("whereish is not imported from the copy: another one comes before it")
    code, output, cpu_s = run_tests(tree, [test for m in mutants for test in m.tests])
    if code != _PASSED or " skipped" in output.splitlines()[-1]:
        raise Undecided(f"without any mutant all tests must pass, none skipped:\n{output[-3000:]}")
    return cpu_s


def judge(mutant: Mutant, unchanged: Path) -> Verdict:
    """Put the fault into a copy of the unchanged tree and run the nearest tests."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        tree = Path(name)
        copy_tree(unchanged, tree)
        path = tree / mutant.file
        path.write_text(mutant.mutated(unchanged), encoding="utf-8")
        for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            stale.unlink()
        code, output, cpu_s = run_tests(tree, mutant.tests)
    if code not in (_PASSED, _FAILED) and cpu_s < CPU_LIMIT_S:
        raise Undecided(f"mutant {mutant.name!r}: pytest ended with {code}:\n{output[-2000:]}")
    seen = next((line[1:].strip() for line in output.splitlines() if line.startswith("E ")), "")
    if any(error in seen for error in _BROKEN):
        raise Undecided(f"mutant {mutant.name!r} does not run: {seen}")
    return Verdict(mutant, code != _PASSED, cpu_s, seen)


def summary(verdicts: Sequence[Verdict]) -> str:
    """The survivors with their reasons, the CPU time and the kill rate."""
    killed = sum(verdict.killed for verdict in verdicts)
    lines = [
        f"survived: {v.mutant.name}: {v.mutant.equivalent or 'NO REASON KNOWN'}"
        for v in verdicts
        if not v.killed
    ]
    cpu_s = sum(verdict.cpu_s for verdict in verdicts)
    rate = killed / len(verdicts)
    lines.append(f"{killed} of {len(verdicts)} mutants killed ({rate:.1%}), {cpu_s:.0f} s of CPU")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the chosen mutants and print the table."""
    parser = argparse.ArgumentParser(prog="stress.mutants", description=__doc__.split("\n")[0])
    parser.add_argument("--only", action="append", metavar="PATTERN", help="names of mutants")
    parser.add_argument("--jobs", type=int, default=1, help="mutants judged side by side")
    parser.add_argument("--seen", action="store_true", help="print how the tests failed, too")
    parser.add_argument("--list", action="store_true", help="print the mutants, run nothing")
    options = parser.parse_args(arguments)
    patterns = options.only or ["*"]
    mutants = [m for m in MUTANTS if any(fnmatch(m.name, pattern) for pattern in patterns)]
    if not mutants:
        parser.error("no mutant has such a name; --list prints them")
    try:
        for mutant in mutants:
            mutant.mutated(ROOT)
            mutant.check_tests(ROOT)
        if options.list:
            for mutant in mutants:
                print(f"{mutant.name:48} {mutant.file}: {mutant.why}")
            return 0
        with tempfile.TemporaryDirectory(prefix="unchanged-") as name:
            unchanged = Path(name)
            copy_tree(ROOT, unchanged)
            cpu_s = check_unchanged(unchanged, mutants)
            print(f"{'passed':9}{cpu_s:7.1f} s  all nearest tests, without a mutant", flush=True)
            verdicts = []
            with ThreadPoolExecutor(options.jobs) as pool:
                for verdict in pool.map(lambda mutant: judge(mutant, unchanged), mutants):
                    word = "killed" if verdict.killed else "SURVIVED"
                    print(f"{word:9}{verdict.cpu_s:7.1f} s  {verdict.mutant.name}", flush=True)
                    if options.seen:
                        print(f"{'':20}{verdict.seen[:100]}", flush=True)
                    verdicts.append(verdict)
    except (Stale, Undecided) as error:
        print(error, file=sys.stderr)
        return 2
    print(summary(verdicts))
    killed = sum(verdict.killed for verdict in verdicts)
    return 0 if killed >= LEAST_KILLED * len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
