"""The examples of docs/publishing.md run as they stand."""

from __future__ import annotations

import re
from pathlib import Path


def test_the_examples_run():
    text = (Path(__file__).parents[1] / "docs" / "publishing.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "docs/publishing.md", "exec"), names)
