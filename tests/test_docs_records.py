"""The examples of docs/records.md run as they stand."""

from __future__ import annotations

import re
from pathlib import Path


def test_the_examples_run():
    text = (Path(__file__).parents[1] / "docs" / "records.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) >= 5
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "docs/records.md", "exec"), names)
