"""View 1: what is drawn for one place."""

from __future__ import annotations

import pytest

from interfaces.workbench.looking import fact, metres, until_drawn

MEASURED = "[data-test=measured] dl"


def test_the_cloud_is_that_of_the_mechanism(watch, shots):
    one = watch()
    one.page.wait_for_selector(MEASURED)
    until_drawn(one.page, 1900)
    assert one.page.inner_text("[data-test=rough]") == "About 300 m rough"
    assert "200 m apart: at most a factor 4" in one.page.inner_text("[data-test=promise]")
    assert metres(fact(one.page, "measured", "mean error")) == pytest.approx(291, abs=2)
    assert metres(fact(one.page, "measured", "95% within")) == pytest.approx(691, abs=3)
    one.page.screenshot(path=shots / "place-cloud-1440-light.png")
    assert one.page.locator(".legend").inner_text().startswith("2,000 possible reports")


def test_a_pin_moves_by_mouse_keys_and_words_and_back(watch):
    one = watch()
    page = one.page
    page.wait_for_selector(MEASURED)
    pin = page.locator(".pin")
    start = pin.bounding_box()
    page.mouse.move(start["x"] + 14, start["y"] + 20)
    page.mouse.down()
    page.mouse.move(start["x"] + 90, start["y"] + 60, steps=8)
    page.mouse.up()
    dragged = pin.bounding_box()
    assert dragged["x"] - start["x"] == pytest.approx(76, abs=3)
    pin.focus()
    page.keyboard.press("ArrowLeft")
    assert pin.bounding_box()["x"] == pytest.approx(dragged["x"] - 8, abs=1.5)
    page.click("[data-test=undo]")
    page.click("[data-test=undo]")
    assert pin.bounding_box()["x"] == pytest.approx(start["x"], abs=1)
    assert page.locator("[data-test=undo]").is_disabled()
    page.fill("[data-test=find]", "Reykja")
    page.locator(".results button", has_text="Reykjavík").first.click()
    until_drawn(page, 1900)
    page.fill("[data-test=find]", "48.8566, 2.3522")
    page.keyboard.press("Enter")
    until_drawn(page, 1900)
    page.fill("[data-test=find]", "148.8, 2.3")
    page.keyboard.press("Enter")
    assert "latitude" in page.inner_text("[role=alert]")
    assert "48.85" not in page.url
    assert "2.35" not in page.url


def test_an_attacker_learns_more_from_ten_reports_unless_pinned(watch, shots):
    one = watch("view=place&show=attack&stage=before", width=390, scheme="dark")
    page = one.page
    seen = {}
    for stage in ("Nothing", "1 report", "10 reports", "10, pinned"):
        page.get_by_role("button", name=stage, exact=True).click()
        page.wait_for_selector(".heat")
        seen[stage] = metres(fact(page, "attack", "his best guess"))
    page.screenshot(path=shots / "place-attack-390-dark.png")
    assert seen["Nothing"] > seen["1 report"] > seen["10 reports"]
    assert seen["10, pinned"] == seen["1 report"]


def test_what_is_near_is_asked_for_around_a_report(watch):
    one = watch("view=place&show=near&radius=300")
    page = one.page
    page.wait_for_selector("[data-test=near] dl")
    assert metres(fact(page, "near", "asked around")) == pytest.approx(992, abs=5)
    fetched, wanted = (
        int(fact(page, "near", name).replace(",", ""))
        for name in ("places fetched", "of them wanted")
    )
    assert fetched > wanted
    until_drawn(page, fetched)


def test_the_optimum_of_location_privacy(watch):
    one = watch("view=place&mechanism=location&apart=200&factor=4")
    one.page.wait_for_selector(MEASURED, timeout=120_000)
    assert metres(fact(one.page, "measured", "mean error")) == pytest.approx(284, abs=2)
