"""View 5: a broken matrix is found out, and so is noise that is too small."""

from __future__ import annotations

import pytest

from interfaces.workbench.looking import fact


def test_a_matrix_that_is_broken_and_one_that_is_not(watch, shots):
    one = watch("view=audit", width=1440, scheme="dark")
    page = one.page
    page.click("[data-test=audit]")
    page.wait_for_selector("[data-test=verdict]")
    assert page.inner_text("[data-test=verdict]") == "The promise is broken"
    assert float(fact(page, "outcome", "certified factor")) == pytest.approx(2.587, abs=0.01)
    assert fact(page, "outcome", "worst pair") == "2 and 3, by report 1"
    page.wait_for_selector(".map[data-pair=drawn]")
    page.screenshot(path=shots / "audit-broken-1440-dark.png")
    page.fill("[data-test=matrix]", "0.5 0.3 0.2\n0.3 0.4 0.3\n0.2 0.3 0.5")
    page.click("[data-test=audit]")
    page.wait_for_selector("[data-test=verdict]:has-text('kept')")
    page.fill("[data-test=matrix]", "0.5 0.3\n0.3 0.4 0.3")
    page.click("[data-test=audit]")
    page.wait_for_selector("[role=alert]:not([hidden])")
    assert "same number of columns" in page.inner_text("[role=alert]")


def test_too_little_noise_is_refuted_and_enough_is_not(watch):
    one = watch("view=audit&what=sampler&sampler=short&samples=1000000")
    page = one.page
    page.click("[data-test=audit]")
    page.wait_for_selector("[data-test=verdict]")
    assert page.inner_text("[data-test=verdict]") == "The claim is refuted"
    page.get_by_label("Sampler").select_option("laplace")
    page.click("[data-test=audit]")
    page.wait_for_selector("[data-test=verdict]:has-text('not refuted')")


def test_a_function_that_the_terminal_named(browser, tmp_path):
    from interfaces.workbench.conftest import Watched

    import workbench_process

    (tmp_path / "noise.py").write_text(
        "import numpy as np\n"
        "def blur(secrets):\n"
        "    return secrets + np.random.default_rng().normal(0, 1, secrets.shape)\n"
    )
    with workbench_process.workbench(tmp_path, "--sampler", f"{tmp_path}/noise.py:blur") as bench:
        one = Watched(browser, f"{bench.address}&view=audit&what=sampler&samples=20000")
        page = one.page
        page.wait_for_selector("option[value=blur]", state="attached")
        page.get_by_label("Sampler").select_option("blur")
        page.click("[data-test=audit]")
        page.wait_for_selector("[data-test=verdict]")
        assert page.inner_text("[data-test=verdict]") == "The claim is refuted"
        one.check(bench.origin)
        one.context.close()
