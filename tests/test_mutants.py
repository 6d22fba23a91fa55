"""The table of mutants fits the source and the tests; the runner judges by what pytest says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from stress import mutants
from stress.mutant import Mutant, Stale
from stress.mutant_tables import MUTANTS

ROOT = Path(__file__).parents[1]


def test_there_are_enough_and_each_has_its_own_name():
    assert len(MUTANTS) >= 41
    assert [name for name, count in Counter(m.name for m in MUTANTS).items() if count > 1] == []


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_every_mutant_still_applies_and_its_tests_exist(mutant):
    assert mutant.mutated(ROOT) != (ROOT / mutant.file).read_text(encoding="utf-8")
    mutant.check_tests(ROOT)


@pytest.fixture
def tree(tmp_path) -> Path:
    """A package of one function with one test, and what surrounds them."""
    for name, text in {
        "src/whereish/__init__.py": "def next_of(x):\n    return x + 1\n",
        "tests/test_next.py": (
            "from whereish import next_of\n\n"
            "def test_next():\n    assert next_of(1) == 2\n\n"
            "def test_blind():\n    assert next_of(1) > 0\n"
        ),
        "pyproject.toml": "[tool.pytest.ini_options]\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def fault(new: str, test: str = "test_next", old: str = "x + 1") -> Mutant:
    return Mutant("m", "src/whereish/__init__.py", old, new, (f"tests/test_next.py::{test}",), "")


def test_a_stale_mutant_is_named(tree):
    for stale, words in [
        (fault("x - 1", old="x + 2"), "occurs 0 times"),
        (fault("y", old="x"), "occurs 3 times"),
        (fault("x  + 1"), "is the old one"),
        (fault("x +"), "no Python"),
    ]:
        with pytest.raises(Stale, match=f"'m': .*{words}"):
            stale.mutated(tree)
    for lost in (fault("x", test="test_gone"), Mutant("m", "", "", "", ("tests/no.py",), "")):
        with pytest.raises(Stale, match="'m': there is no test"):
            lost.check_tests(tree)


def test_mutants_are_killed_or_survive_and_the_tree_stays(tree, monkeypatch, capsys):
    monkeypatch.setattr(mutants, "ROOT", tree)
    before = (tree / "src/whereish/__init__.py").read_text()
    monkeypatch.setattr(mutants, "MUTANTS", [fault("x - 1"), fault("x + 3", test="test_blind")])
    assert mutants.main([]) == 1
    told = capsys.readouterr().out
    assert "1 of 2 mutants killed (50.0%)" in told
    assert "survived: m: NO REASON KNOWN" in told
    monkeypatch.setattr(mutants, "MUTANTS", [fault("y + 1")])
    assert mutants.main([]) == 2
    assert "'m' does not run: NameError" in capsys.readouterr().err
    monkeypatch.setattr(mutants, "MUTANTS", [fault("x - 1", test="test_next[no such case]")])
    assert mutants.main([]) == 2  # such a test is not run: nothing is judged
    assert "all tests must pass" in capsys.readouterr().err
    assert (tree / "src/whereish/__init__.py").read_text() == before
