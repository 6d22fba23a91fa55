"""View 3: bounds close in, rivals are beaten, and the channel is kept."""

from __future__ import annotations

import pytest

import whereish as wh
from interfaces.workbench.looking import click_map, fact, metres


def test_a_grid_is_solved(watch, shots, tmp_path):
    one = watch("view=optimal&side=5&prior=even")
    page = one.page
    page.wait_for_selector(".map[data-shapes='25']")
    page.click("[data-test=solve]")
    page.wait_for_selector("[data-test=npz]")
    loss = metres(fact(page, "outcome", "loss"))
    assert metres(fact(page, "outcome", "no channel is below")) == pytest.approx(loss, rel=0.01)
    rows = page.locator("[data-test=outcome] tbody tr")
    assert rows.count() == 7
    losses = [metres(rows.nth(i).locator("td").nth(1).inner_text()) for i in range(7)]
    assert losses[0] == min(losses)
    assert page.locator("[data-test=outcome] polyline").count() == 2
    click_map(page)
    page.wait_for_selector("[data-test=at] dl")
    assert fact(page, "at", "likeliest report").endswith("of the time")
    page.screenshot(path=shots / "optimal-solved-1440-light.png")
    with page.expect_download() as saved:
        page.click("[data-test=npz]")
    saved.value.save_as(tmp_path / "channel.npz")
    channel = wh.load(tmp_path / "channel.npz")
    assert len(channel.secrets) == 25
    page.get_by_role("button", name="Audit it").click()
    page.click("[data-test=audit]")
    page.wait_for_selector("[data-test=verdict]")
    assert page.inner_text("[data-test=verdict]") == "The promise is kept"
    page.wait_for_selector(".map[data-pair=drawn]")


def test_sites_are_drawn_and_uploaded(watch, tmp_path):
    one = watch("view=optimal&source=drawn&prior=even")
    page = one.page
    page.wait_for_selector("[data-test=add-site]")
    assert page.locator("[data-test=solve]").is_disabled()
    for x, y in ((0.3, 0.3), (0.6, 0.4), (0.5, 0.7)):
        click_map(page, x, y)
        page.wait_for_timeout(150)
    page.wait_for_selector(".map[data-shapes='3']")
    rows = "\n".join(f"{2.30 + 0.01 * (k % 4)},{48.85 + 0.01 * (k // 4)}" for k in range(12))
    (tmp_path / "sites.csv").write_text("lon,lat\n" + rows)
    page.get_by_role("button", name="File", exact=True).click()
    page.set_input_files("input[type=file]", tmp_path / "sites.csv")
    page.wait_for_selector(".map[data-shapes='12']")
