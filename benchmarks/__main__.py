"""Run every ``bench_*`` module, or those that are named."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path


def main() -> int:
    known = sorted(path.stem for path in Path(__file__).parent.glob("bench_*.py"))
    wanted = [f"bench_{name.removeprefix('bench_')}" for name in sys.argv[1:]] or known
    failed = [line for name in wanted for line in import_module(f"benchmarks.{name}").main()]
    print("\nall bars met" if not failed else "\nbars missed:\n  " + "\n  ".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
