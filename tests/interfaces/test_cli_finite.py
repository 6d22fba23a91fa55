"""build optimal, audit and compare, as a user runs them."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import whereish as wh
from instances import peaked
from whereish.mechanisms.channels.channel import Channel


def whereish(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "whereish", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finite")
    places, prior = peaked(5, 5)
    rows = [f"{x!r},{y!r},{p!r}" for x, y, p in np.c_[places, 1000 * prior].tolist()]
    (folder / "sites.csv").write_text("\n".join(["x,y,prior", *rows]))
    done = whereish(
        *("build", "optimal", "--sites", str(folder / "sites.csv"), "--epsilon", "1.07/km"),
        *("-o", str(folder / "mechanism.npz")),
    )
    assert done.returncode == 0, done.stderr
    assert "(optimal)" in done.stdout
    assert "0.00107 *" in done.stderr
    return folder


def test_the_file_is_a_channel(folder):
    channel = Channel.load(folder / "mechanism.npz")
    assert len(channel.secrets) == 25
    assert channel.details["status"] == "optimal"


def test_nothing_is_replaced_unasked(folder):
    again = whereish(
        *("build", "optimal", "--sites", str(folder / "sites.csv"), "--epsilon", "1.07/km"),
        *("-o", str(folder / "mechanism.npz")),
    )
    assert again.returncode == 2
    assert "--overwrite" in again.stderr


def test_audit_verifies_from_the_numbers(folder):
    done = whereish("audit", str(folder / "mechanism.npz"), "--json")
    told = json.loads(done.stdout)
    assert 0.99 < told["factor"] <= 1
    assert told["guarantee"]["basis"] == "certified"
    text = whereish("audit", str(folder / "mechanism.npz"))
    assert text.stdout.startswith("kept: 25 secrets")


def test_audit_refuses_changed_numbers(folder, tmp_path):
    with np.load(folder / "mechanism.npz") as file:
        arrays = dict(file)
    arrays["secrets"] = arrays["secrets"] * 0.5
    np.savez(tmp_path / "changed.npz", **arrays)
    done = whereish("audit", str(tmp_path / "changed.npz"))
    assert done.returncode == 2
    assert "do not match their certificate" in done.stderr


def test_compare_ranks_the_optimum_first(folder, tmp_path):
    plot = tmp_path / "figures.png"
    done = whereish(
        *("compare", "--sites", str(folder / "sites.csv"), "--epsilon", "1.07/km"),
        *("--zone", "1.5 km", "--plot", str(plot), "--json"),
    )
    assert done.returncode == 0, done.stderr
    lines = {line["mechanism"]: line for line in json.loads(done.stdout)}
    private = [
        line["quality_loss_m"]
        for name, line in lines.items()
        if line["keeps_epsilon"] and name != "optimal"
    ]
    optimum = lines["optimal"]
    assert optimum["quality_loss_m"] <= min(private)
    assert optimum["adversary_error_m"] == pytest.approx(optimum["quality_loss_m"], rel=1e-9)
    game = lines["OptPriv"]
    assert game["adversary_error_m"] >= optimum["adversary_error_m"] * (1 - 1e-6)
    assert {"planar Laplace, remapped", "cloaking", "uniform", "identity"} <= set(lines)
    assert plot.stat().st_size > 1000


def test_compare_over_time_ends_with_the_optimum(folder):
    common = ("compare", "--sites", str(folder / "sites.csv"), "--epsilon", "1.07/km", "--time")
    done = whereish(*common, "--json")
    assert done.returncode == 0, done.stderr
    moments = json.loads(done.stdout)
    names = [moment["mechanism"] for moment in moments]
    assert {"exponential + remap", "planar Laplace + remap"} <= set(names)
    assert names[-1] == "optimal"
    best = moments[-1]
    assert best["gap"] <= 1e-3
    assert all(moment["loss"] >= best["loss"] * (1 - 1e-9) for moment in moments)
    assert all(moment["gap"] >= best["gap"] - 1e-9 for moment in moments)
    spent = [moment["cpu_s"] for moment in moments if moment["mechanism"].startswith("optimal")]
    assert spent == sorted(spent)
    assert "--time" in whereish(*common, "--zone", "1 km").stderr
    assert "--time" in whereish(*common[:-1], "--time-limit", "3").stderr


def test_a_site_typed_with_five_decimals_is_that_site(tmp_path):
    sites = wh.Points(np.array([[2.3331649, 48.8541251], [2.3512345, 48.8612345]]), wh.Sphere())
    wh.exponential_channel(sites, "1/km").save(tmp_path / "sites.npz")
    # 200 reports: one in three, or six, is of the other site, and never are all of one
    saved = ("report", "--mechanism", str(tmp_path / "sites.npz"), "-n", "200", "--at")
    done = whereish(*saved, "48.85413,2.33316")
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == {"48.85413,2.33316", "48.86123,2.35123"}
    done = whereish(*saved, "48.85414,2.33318")
    assert done.returncode == 2
    assert "within 1 m; 200 of 200 are not" in done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "lon and lat"),
        ("x,y\n", "no rows"),
        ("x,y\n1,north\n", "must have numbers"),
        ("x,y,prior\n1,2,-1\n3,4,2\n", "prior"),
    ],
)
def test_bad_sites_are_told_in_a_sentence(tmp_path, text, message):
    (tmp_path / "sites.csv").write_text(text)
    done = whereish(
        *("build", "optimal", "--sites", str(tmp_path / "sites.csv"), "--epsilon", "1/km"),
        *("-o", str(tmp_path / "m.npz")),
    )
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "m.npz").exists()
