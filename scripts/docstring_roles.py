"""For mkdocstrings: roles of reStructuredText in docstrings become plain code.

``:func:`perturb` `` is shown as `perturb`, ``:class:`~whereish.units.Epsilon` `` as `Epsilon`.
"""

from __future__ import annotations

from typing import Any

from griffe import Extension, Object

from whereish.interfaces.reference import without_roles


class DocstringRoles(Extension):
    """Every docstring, before its sections are read."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = without_roles(obj.docstring.value)
