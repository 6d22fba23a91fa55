"""What is public is documented, and what is generated is current."""

from __future__ import annotations

import inspect
import re
import subprocess
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest
from markdown import Markdown

import whereish
from whereish import errors
from whereish.interfaces.cli import COMMANDS
from whereish.interfaces.reference import names
from whereish.mechanisms.registry import REGISTRY

ROOT = Path(__file__).parents[1]


def test_the_reference_of_names_is_current():
    assert (ROOT / "docs" / "api.md").read_text() == names(), "run `make docs`"


def test_every_command_and_name_is_documented():
    cli, api = ((ROOT / "docs" / name).read_text() for name in ("cli.md", "api.md"))
    page = Markdown(extensions=["mkdocs-click"]).convert(cli)
    for command in COMMANDS:
        assert f"<h3>{command}</h3>" in page
        assert f"whereish {command} [OPTIONS]" in page
    for name in whereish.__all__:
        assert f"## wh.{name}\n" in api


def docstring(value: object) -> str:
    """Its own docstring: one that is inherited says nothing about this name."""
    return inspect.cleandoc(value.__doc__ or "")


@pytest.mark.parametrize("name", whereish.__all__)
def test_every_public_name_has_an_example(name):
    # pytest runs them all (--doctest-modules over src).
    text = docstring(getattr(whereish, name))
    assert ">>> " in text
    shown = text[text.index(">>> ") :].replace("_", "").lower()
    assert name.replace("_", "").lower() in shown, "the example shows another name"


@pytest.mark.parametrize("name", REGISTRY)
def test_every_mechanism_states_its_contract_in_one_line(name):
    lines = docstring(REGISTRY[name].make).splitlines()
    (contract,) = (line for line in lines if line.startswith("Contract:"))
    assert contract.startswith("Contract: keeps ")


REFUSE = {
    *(name for name in whereish.__all__ if inspect.isfunction(getattr(whereish, name))),
    *(entry.make.__name__ for entry in REGISTRY.values()),
}


@pytest.mark.parametrize("name", sorted(REFUSE))
def test_every_function_and_mechanism_says_what_it_refuses(name):
    """Numpy's section, with errors of ours: all of them check what they are given."""
    text = docstring(getattr(whereish, name))
    _, found, section = text.partition("\nRaises\n------\n")
    assert found
    raised = re.findall(r"^(\w+)$", section.partition("\n\n")[0], re.M)
    assert raised
    for error in raised:
        assert issubclass(getattr(errors, error), whereish.WhereishError)


def test_help_on_the_package_fits_a_screen_and_names_what_is_public():
    text = docstring(whereish)
    assert len(text.splitlines()) <= 40
    assert max(map(len, text.splitlines())) <= 79
    named = set(re.findall(r"\w+", text))
    assert set(whereish.__all__) <= named, sorted(set(whereish.__all__) - named)


def test_the_readme_names_the_two_commands_and_its_links_exist():
    readme = (ROOT / "README.md").read_text()
    assert "make demo" in readme
    assert "make test" in readme
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), ROOT / "SECURITY.md"]:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in link:
                assert (page.parent / link).exists(), f"{page.name}: {link}"


def resolves(dotted: str) -> bool:
    """Whether a dotted name is a module of the package, or something in one."""
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            value = import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        rest = ".".join(parts[cut:])
        try:
            return not rest or attrgetter(rest)(value) is not None
        except AttributeError:
            return False
    return False


def test_modules_and_files_that_texts_name_exist():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "src").rglob("*.py")]
    pages = [page for page in pages if page.name != "extending.md"]  # it makes new ones
    dotted = re.compile(r"`~?(whereish(?:\.\w+)+)`")
    short = re.compile(r":mod:`(?!~?whereish)")
    file = re.compile(r"`((?:tests|stress|benchmarks|docs|scripts|mechanisms)/[\w./-]*)`")
    for page in pages:
        text = page.read_text()
        for name in dotted.findall(text):
            assert resolves(name), f"{page.name}: {name}"
        assert not short.search(text), f"{page.name}: a module is named without its room"
        for name in file.findall(text):
            assert any((home / name).exists() for home in (ROOT, ROOT / "src" / "whereish")), name


def committed() -> list[str]:
    try:
        return subprocess.run(
            ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.split()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")


def test_no_data_is_left_at_the_root():
    """What examples write when somebody tries them there is not part of the project."""
    told = {"", ".cff", ".md", ".toml", ".yaml", ".yml"}
    assert {Path(name).suffix for name in committed() if "/" not in name} <= told


def test_no_path_or_host_of_a_machine_is_committed():
    files = committed()
    forbidden = re.compile(r"/(?:root|home)/\w|/work/\w|/tmp/\w|pypi\.\w+\.\w+/simple")
    for name in files:
        path = ROOT / name
        if path.suffix in {".gz", ".npz", ".pmtiles", ".png"} or path == Path(__file__):
            continue
        assert not forbidden.search(path.read_text(errors="ignore")), name
