"""Every study in its quick form, by the command itself; and that verdicts follow from numbers."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from whereish.errors import InvalidInput
from whereish.studies.figures import figure
from whereish.studies.framework import published as table
from whereish.studies.framework.finding import Finding, Verdict
from whereish.studies.framework.published import Published, published
from whereish.studies.framework.registry import STUDIES, chosen, study
from whereish.studies.framework.runner import run_studies, write_results
from whereish.studies.framework.study import Run, Study

ROOT = Path(__file__).parents[2]
NUMBER = Published("b-areas.ratio", "B", "p. 1", 2.0, 0.1, "a setting")


def reproduce(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "whereish", "reproduce", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )


MATCHES = {
    "kp-table": 2,
    "eg-symmetry": 8,
    "eg-remaps": 1,
    "b-records": 3,
    "b-areas": 22,
    "b-commuters": 4,
    "b-zones": 2,
    "b-regions": 1,
    "b-spanners": 2,
    "c-profiles": 3,
    "field-audit": 2,
}
"""How many numbers match at least, without the real data."""


# -- every study -----------------------------------------------------------------------


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_has_a_verdict_on_each_of_its_numbers(name, tmp_path):
    """All of these together are `whereish reproduce all --quick`."""
    done = reproduce(name, "--quick", "-o", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"seed {study(name).seed}" in done.stdout
    verdicts = re.findall(r"obtained .*: (matches|differs because|cannot be compared)", done.stdout)
    assert len(verdicts) == len(table.published_numbers(name))
    assert verdicts.count("matches") >= MATCHES.get(name, 0)
    page = (tmp_path / "report.html").read_text()
    assert_self_contained(page)
    drawings = {path.stem for path in tmp_path.glob("*.png")}
    assert drawings == {path.stem for path in tmp_path.glob("*.svg")}
    assert page.count("<img ") == len(drawings) > 0
    for path in tmp_path.glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")
    for path in tmp_path.glob("*.svg"):
        ElementTree.parse(path)


class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        assert tag not in {"script", "link", "iframe", "object"}
        self.found += [v for k, v in attrs if k in {"src", "href", "srcset", "data", "poster"}]


def assert_self_contained(page: str) -> None:
    links = Links()
    links.feed(page)
    assert all(link.startswith(("data:image/png;base64,", "#")) for link in links.found)
    assert "url(" not in page
    assert "@import" not in page
    assert "default-src 'none'" in page


def test_all_is_every_study_and_a_source_is_its_own():
    assert [each.name for each in chosen("all")] == list(STUDIES)
    assert [each.name for each in chosen("b")] == [n for n in STUDIES if n.startswith("b-")]
    with pytest.raises(InvalidInput, match="must be one of"):
        chosen("nothing")


def test_the_list_names_every_study():
    done = reproduce("list")
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(STUDIES)


def test_at_least_sixty_numbers_are_published():
    assert len(published()) >= 60


def test_every_published_number_belongs_to_a_study():
    assert {number.study for number in published().values()} <= set(STUDIES)


def test_the_page_of_published_numbers_is_current():
    assert (ROOT / "docs" / "published.md").read_text() == table.markdown(), "run `make docs`"


# -- verdicts --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("relation", "obtained", "verdict"),
    [
        ("equals", 2.1, Verdict.MATCHES),
        ("equals", 1.9, Verdict.MATCHES),
        ("equals", 2.1001, Verdict.DIFFERS),
        ("equals", 1.8999, Verdict.DIFFERS),
        ("at least", 9.0, Verdict.MATCHES),
        ("at least", 1.8, Verdict.DIFFERS),
        ("at most", 1.0, Verdict.MATCHES),
        ("at most", 2.2, Verdict.DIFFERS),
        ("equals", None, Verdict.INCOMPARABLE),
    ],
)
def test_the_verdict_follows_from_the_numbers(relation, obtained, verdict):
    number = Published("b-areas.ratio", "B", "p. 1", 2.0, 0.1, "a setting", relation=relation)
    finding = Finding(number, obtained, "of a reason")
    assert finding.verdict is verdict
    assert ("of a reason" in finding.sentence) == (verdict is not Verdict.MATCHES)
    assert not finding.unexplained


def test_a_difference_without_a_reason_is_said_to_be_one():
    finding = Finding(NUMBER, 3.0)
    assert finding.unexplained
    assert "does not say" in finding.sentence


@pytest.mark.parametrize("obtained", [None, float("nan"), float("inf")])
def test_a_finding_needs_a_number_or_a_reason(obtained):
    with pytest.raises(InvalidInput):
        Finding(NUMBER, obtained)


def made_up(work) -> Study:
    return Study("b-areas", "Made up", "B", 1, work)


def test_a_number_is_compared_once_and_must_be_in_the_table():
    run = Run(made_up(lambda run: None))
    run.compare("ratio", 10.7)
    with pytest.raises(InvalidInput, match="already"):
        run.compare("ratio", 10.7)
    with pytest.raises(InvalidInput, match="not in the table"):
        run.compare("typed-in", 1.0)


def test_a_study_that_forgets_a_number_fails():
    with pytest.raises(InvalidInput, match=r"left without a verdict: .*worst-ratio"):
        list(run_studies([made_up(lambda run: run.compare("ratio", 10.7))]))


def test_seeds_decide_what_is_drawn():
    a, b = (Run(made_up(lambda run: None)) for _ in range(2))
    assert a.public.random() == b.public.random()
    assert a.rng.words(2).tolist() == b.rng.words(2).tolist()


def test_figures_are_the_same_bytes_and_words_are_escaped(tmp_path):
    def work(run: Run) -> None:
        axes = figure("x (m)", "y (m)")
        axes.plot([0, 1], [0, 1])
        run.draw("line", axes, "A <caption> & more")
        run.table("A <table>", ("a", "b"), [(1, 2.5), ("<b>", True)])

    pages = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        run = Run(made_up(work))
        work(run)
        pages.append(write_results([run], folder, quick=True).read_text())
    assert pages[0] == pages[1]
    for kind in ("png", "svg"):
        one, two = (tmp_path / f / f"b-areas-line.{kind}" for f in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()
    assert "&lt;caption&gt;" in pages[0]
    assert "<b>" not in pages[0]
    assert_self_contained(pages[0])


def test_rows_of_a_table_fit_its_head():
    with pytest.raises(InvalidInput, match="2 cells"):
        Run(made_up(lambda run: None)).table("t", ("a", "b"), [(1,)])
