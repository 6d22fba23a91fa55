"""All kernels of the package: what ``whereish compile`` compiles."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from whereish.compiled.kernels import KERNELS, Kernel

__all__ = ["kernels"]

_PACKAGE = Path(__file__).parents[1]


def kernels() -> list[Kernel]:
    """Every kernel of the package, by name: each module that imports the decorator is imported."""
    for path in sorted(_PACKAGE.rglob("*.py")):
        if "compiled import" in (text := path.read_text()) and "@kernel" in text:
            parts = path.relative_to(_PACKAGE.parent).with_suffix("").parts
            import_module(".".join(parts).removesuffix(".__init__"))
    own = (kernel for kernel in KERNELS if kernel.name.startswith("whereish."))
    return sorted(own, key=lambda kernel: kernel.name)
