"""What holds on every view: for screen readers and keyboards, in links and copies, in weight."""

from __future__ import annotations

import gzip
import operator
import re
import shlex
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

import whereish
from interfaces.workbench.looking import click_map, until_drawn

VIEWS = ["place", "map", "optimal", "data", "audit"]
PAGE = Path(whereish.__file__).parent / "interfaces" / "workbench" / "page"


def settle(page, view):
    """Wait for the first thing that a view draws."""
    waits = {
        "place": "[data-test=measured] dl",
        "map": ".layer-levels",
        "optimal": ".map:not([data-shapes='0'])[data-shapes]",
        "data": "[data-test=outcome] .empty",
        "audit": "[data-test=outcome] .empty",
    }
    page.wait_for_selector(waits[view])
    page.wait_for_timeout(250)


@pytest.mark.parametrize(("width", "scheme"), [(1440, "dark"), (390, "light")])
def test_screenshots(watch, shots, width, scheme):
    """The other two pairs of a width and a scheme, to be looked at."""
    page = watch("view=place", width=width, scheme=scheme).page
    for view in VIEWS:
        page.locator("nav button").nth(VIEWS.index(view)).click()
        settle(page, view)
        page.screenshot(path=shots / f"{view}-{width}-{scheme}.png")


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_axe_finds_nothing_serious(watch, shots, width, scheme):
    axe = pytest.importorskip("axe_playwright_python")
    source = (Path(axe.__file__).parent / "axe.min.js").read_text()
    one = watch("view=place", width=width, scheme=scheme)
    page = one.page
    for view in VIEWS:
        page.locator("nav button").nth(VIEWS.index(view)).click()
        settle(page, view)
        page.screenshot(path=shots / f"{view}-{width}-{scheme}.png")
        page.click("[data-test=explain]")
        assert page.locator(".drawer .formula").count() >= 1
        assert page.locator(".drawer .source").count() >= 2
        page.evaluate(source)
        found = page.evaluate("async () => (await axe.run()).violations")
        serious = [
            (one["id"], [node["html"][:200] for node in one["nodes"]])
            for one in found
            if one["impact"] in ("serious", "critical")
        ]
        assert serious == [], view
        page.keyboard.press("Escape")
        assert page.locator(".drawer").is_hidden()
        wide = page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{view} scrolls sideways at {width}"


def test_links_restore_the_view_without_the_place(watch, bench):
    one = watch("view=place&show=attack&stage=many&apart=500&factor=3")
    page = one.page
    page.wait_for_selector(".heat")
    page.fill("[data-test=find]", "12.34567, 98.76543")
    page.keyboard.press("Enter")
    page.wait_for_timeout(300)
    page.click("[data-test=copy-link]")
    link = page.get_attribute("[data-test=copy-link]", "data-copied")
    parts = urlsplit(link)
    assert parts.query == ""
    settings = {name: values[0] for name, values in parse_qs(parts.fragment).items()}
    assert settings["apart"] == "500"
    assert settings["stage"] == "many"
    assert set(settings) <= {"view", "mechanism", "apart", "factor", "show", "stage", "prior"}
    for digits in ("12.3", "98.7"):
        assert digits not in link
        assert digits not in page.url
    other = watch(parts.fragment)
    other.page.wait_for_selector(".heat")
    assert (
        other.page.get_by_role("button", name="10 reports").get_attribute("aria-pressed") == "true"
    )


@pytest.mark.parametrize(
    ("view", "settings"),
    [
        ("place", ""),
        ("place", "&show=near"),
        ("place", "&show=attack"),
        ("map", "&cells=20"),
        ("optimal", "&side=3&prior=even"),
        ("data", ""),
        ("audit", ""),
        ("audit", "&what=saved"),
        ("audit", "&what=sampler"),
    ],
)
def test_copies_have_no_place_and_are_python(watch, view, settings):
    one = watch(f"view={view}{settings}")
    page = one.page
    settle(page, view)
    click_map(page, 0.4, 0.6)
    for name in ("copy-python", "copy-command"):
        page.click(f"[data-test={name}]")
        page.wait_for_function(
            "name => document.querySelector(`[data-test=${name}]`).dataset.copied", arg=name
        )
        if page.locator(".drawer").is_visible():
            page.keyboard.press("Escape")
        text = page.get_attribute(f"[data-test={name}]", "data-copied")
        assert "39.9" not in text
        assert "-75.1" not in text
        if name == "copy-python":
            compile(text, view, "exec")
            assert "import whereish as wh" in text
            for used in re.findall(r"\bwh((?:\.\w+)+)", text):
                assert operator.attrgetter(used[1:])(whereish), used
        else:
            for line in text.splitlines():
                if not line.startswith("#"):
                    options_exist(line)


def options_exist(line):
    """The command is one of ours, and has the options that it is copied with."""
    import click

    from whereish.interfaces.cli import cli

    name, *words = shlex.split(line)
    assert name == "whereish"
    command = cli
    while isinstance(command, click.Group):
        command = command.get_command(click.Context(command), words.pop(0))
        assert command is not None, line
    known = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
    given = [word for word in words if word.startswith("-")]
    assert set(given) <= known, line
    arguments = [one for one in command.params if isinstance(one, click.Argument)]
    taken = sum(
        1 for word in given if not next(p for p in command.params if word in p.opts).is_flag
    )
    assert len(words) - len(given) - taken == len(arguments), line


def test_light_and_dark_are_a_choice_that_stays(watch):
    one = watch(scheme="light")
    page = one.page
    page.get_by_label("Switch between light and dark").click()
    assert page.evaluate("() => document.documentElement.dataset.theme") == "dark"
    page.reload()
    page.wait_for_selector("nav")
    assert page.evaluate("() => document.documentElement.dataset.theme") == "dark"
    assert page.evaluate("() => Object.keys(localStorage)") == ["whereish-theme"]


def test_the_keyboard_reaches_everything(watch):
    one = watch()
    page = one.page
    until_drawn(page, 1900)
    seen = set()
    for _ in range(45):
        page.keyboard.press("Tab")
        seen.add(
            page.evaluate(
                "() => { const e = document.activeElement; return e.dataset.test || e.textContent"
                ".trim().slice(0, 20) || e.getAttribute('aria-label') || e.className; }"
            )
        )
    for wanted in (
        "Audit",
        "explain",
        "copy-python",
        "find",
        "How rough reports are",
        "10, pinned",
    ):
        assert wanted in seen, wanted
    assert page.locator(".pin[tabindex='0'], .pin[role=button]").count() == 1


def test_a_stranger_gets_an_explanation(browser, bench):
    context = browser.new_context()
    page = context.new_page()
    page.goto(bench.origin + "/")
    page.wait_for_selector("[role=alert]")
    assert "whereish workbench" in page.inner_text("[role=alert]")
    context.close()


def test_the_page_is_light():
    weight = sum(
        len((PAGE / name).read_bytes()) for name in ("index.html", "app.js", "app.css", "icon.svg")
    )
    assert weight < 2_000_000
    assert len(gzip.compress((PAGE / "app.js").read_bytes())) < 200_000
    text = (PAGE / "app.js").read_text()
    for evil in ("new Function", "unpkg.com", "cdn."):
        assert evil not in text, evil
