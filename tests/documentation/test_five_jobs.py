"""Five people's jobs, each from the README's own words in a clean environment.

One environment is made from the built wheel, as `pip install 'whereish[geo]'` makes it; each
job's blocks then run as they stand.  CPU times are printed, installation included.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
JOBS = ("Data engineer", "App developer", "GIS analyst", "Researcher", "Citizen")
FENCE = re.compile(r"^```(python|sh)\n(.*?)^```$", re.M | re.S)
TRIPS = "lon,lat,person,hour\n" + "".join(
    f"{2.3 + 1e-3 * i:.3f},{48.8 + 1e-3 * i:.3f},{i},{i % 24}\n" for i in range(50)
)
pytestmark = pytest.mark.slow


def children_cpu() -> float:
    times = os.times()
    return times.children_user + times.children_system


def run(*command: str, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=cwd, env=environment or None, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The binaries of a new environment with the wheel of this tree, and what making it took."""
    here = tmp_path_factory.mktemp("five-jobs")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    if subprocess.run([*pip, "--version"], capture_output=True, check=False).returncode:
        pytest.skip("this environment has no pip")
    run(*pip, "wheel", "--quiet", "--no-deps", "-w", str(here), str(ROOT), cwd=here)
    (wheel,) = here.glob("*.whl")
    before = children_cpu()
    run(sys.executable, "-m", "venv", str(here / "venv"), cwd=here)
    binaries = here / "venv" / "bin"
    asked = f"{wheel}[geo]"
    run(str(binaries / "pip"), "install", "--quiet", "--disable-pip-version-check", asked, cwd=here)
    return binaries, children_cpu() - before


def job(name: str) -> str:
    (section,) = re.findall(rf"^### {name}.*?\n(.*?)(?=^##)", README, re.M | re.S)
    return section


@pytest.mark.parametrize("name", JOBS)
def test_a_job_runs_as_the_readme_says_it(name, installed, tmp_path, capsys):
    binaries, installation = installed
    (tmp_path / "trips.csv").write_text(TRIPS)
    clean = {"PATH": f"{binaries}:/usr/bin:/bin", "HOME": str(tmp_path)}
    before = children_cpu()
    blocks = FENCE.findall(job(name))
    assert blocks
    for language, text in blocks:
        shell = ("bash", "-euo", "pipefail", "-c", text)
        run(*(("python", "-c", text) if language == "python" else shell), cwd=tmp_path, **clean)
    spent = children_cpu() - before
    with capsys.disabled():
        print(f"\n{name}: {installation:.0f} s of CPU to install, {spent:.1f} s to the result")
    assert installation + spent < 180


def test_the_jobs_leave_what_they_say(installed, tmp_path):
    binaries, _ = installed
    (tmp_path / "trips.csv").write_text(TRIPS)
    clean = {"PATH": f"{binaries}:/usr/bin:/bin", "HOME": str(tmp_path)}
    ((_, first),) = FENCE.findall(job("Data engineer"))
    run("bash", "-euo", "pipefail", "-c", first, cwd=tmp_path, **clean)
    look = "from pyarrow import parquet; print(parquet.read_table('public.parquet').column_names)"
    assert run("python", "-c", look, cwd=tmp_path, **clean).strip() == "['lon', 'lat', 'hour']"
    whole = run("whereish", "ledger", "statement", "ledger.db", "3", cwd=tmp_path, **clean)
    assert "0.0067" in whole
