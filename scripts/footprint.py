"""Print what each core dependency weighs and what it is for, as a Markdown table."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def megabytes(name: str) -> tuple[float, float]:
    """Installed files of a distribution: without byte code, and the byte code."""
    distribution = metadata.distribution(name)
    paths = (distribution.locate_file(file) for file in distribution.files or ())
    files = [path for path in (Path(str(path)) for path in paths) if path.is_file()]
    code = sum(path.stat().st_size for path in files if path.suffix == ".pyc")
    return (sum(path.stat().st_size for path in files) - code) / 1e6, code / 1e6


def package_megabytes() -> float:
    """The package's own files, without byte code and compiled kernels."""
    import whereish

    home = Path(whereish.__file__).parent
    files = (path for path in home.rglob("*") if "__pycache__" not in path.parts)
    return sum(path.stat().st_size for path in files if path.is_file()) / 1e6


def needs(name: str) -> list[str]:
    """What a distribution requires here, by its own metadata, without extras."""
    from packaging.requirements import Requirement

    try:
        requires = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []
    asked = (Requirement(line) for line in requires)
    return [r.name for r in asked if r.marker is None or r.marker.evaluate({"extra": ""})]


def reasons() -> dict[str, str]:
    """The comments beside this system's dependencies in pyproject.toml."""
    from packaging.requirements import Requirement

    text = (ROOT / "pyproject.toml").read_text()
    core = tomllib.loads(text)["project"]["dependencies"]
    asked = map(Requirement, core)
    names = [r.name for r in asked if r.marker is None or r.marker.evaluate()]
    return {
        normal(name): re.search(rf'"{re.escape(name)}\b[^"]*",\s*#\s*(.*)', text)[1]  # type: ignore[index]
        for name in names
    }


def main() -> None:
    """Each dependency with what it brings along, heaviest first."""
    why, seen, rows, code = reasons(), set(), [], 0.0
    for name in why:
        waiting, own = [name], 0.0
        while waiting:
            one = normal(waiting.pop())
            if one in seen or (one in why and one != name):
                continue
            seen.add(one)
            try:
                plain, compiled = megabytes(one)
            except metadata.PackageNotFoundError:
                continue
            own, code = own + plain, code + compiled
            waiting += needs(one)
        rows.append((own, name))
    print("| dependency, with what it alone brings | MB | what for |\n|---|---|---|")
    for size, name in sorted(rows, reverse=True):
        print(f"| {name} | {size:.1f} | {why[name]} |")
    together, itself = sum(size for size, _ in rows), package_megabytes()
    print(f"| **dependencies together** | **{together:.0f}** | |")
    print(f"| byte code of them, as pip leaves it | {code:.0f} | none with `pip --no-compile` |")
    print(f"| whereish itself | {itself:.1f} | the workbench's page and base map are 3.3 of it |")


if __name__ == "__main__":
    main()
