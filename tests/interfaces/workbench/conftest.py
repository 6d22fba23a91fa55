"""One workbench for all tests that do not break it, and a browser for each file of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import workbench_process


@pytest.fixture(scope="session")
def bench(tmp_path_factory):
    with workbench_process.workbench(tmp_path_factory.mktemp("workbench")) as made:
        yield made


@pytest.fixture(scope="module")
def browser():
    """For one file: while it is there, Playwright's event loop runs in this thread, and whoever
    comes later in this process could run none."""
    if not Path(workbench_process.CHROMIUM).exists():
        pytest.skip("Chromium is not installed: see scripts/system-packages.sh")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        made = playwright.chromium.launch(
            executable_path=workbench_process.CHROMIUM, args=["--no-sandbox"]
        )
        yield made
        made.close()


@pytest.fixture(scope="session")
def shots(tmp_path_factory):
    """Where screenshots are kept: a folder that CI may name, to keep them as artefacts."""
    named = os.environ.get("WHEREISH_SHOTS")
    folder = Path(named) if named else tmp_path_factory.mktemp("shots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class Watched:
    """A page whose console, errors and requests are watched."""

    def __init__(self, browser, address, *, width=1440, scheme="light"):
        height = 900 if width > 800 else 844
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, accept_downloads=True
        )
        self.page = self.context.new_page()
        self.said, self.requests = [], []
        self.page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        self.context.on("request", lambda request: self.requests.append(request.url))
        self.page.set_default_timeout(120_000)
        self.page.goto(address)

    refusals = False
    """Whether the test makes the server refuse something: Chromium itself writes that down."""

    def check(self, origin):
        """Nothing was said on the console, and nobody else was asked."""
        refused = "error: Failed to load resource: the server responded with a status of 4"
        said = [line for line in self.said if not (self.refusals and line.startswith(refused))]
        assert said == []
        foreign = [
            url
            for url in self.requests
            if not url.startswith((origin + "/", "data:", "blob:" + origin))
        ]
        assert foreign == []


@pytest.fixture
def watch(browser, bench):
    opened = []

    def make(settings="", **options):
        address = f"{bench.address}&{settings}" if settings else bench.address
        opened.append(Watched(browser, address, **options))
        return opened[-1]

    yield make
    for one in opened:
        one.check(bench.origin)
        one.context.close()
