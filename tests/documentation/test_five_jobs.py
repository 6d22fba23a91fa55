"""Five people's jobs, each from the README's own words in a clean environment.

One environment is made from the built wheel, first as `pip install whereish` makes it, where the
core has to do its work alone, then as `pip install 'whereish[geo]'` does; each job's blocks then
run as they stand.  CPU times are printed, installation included.
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


MOST_MB = 622
"""The core's files without byte code: 616 of dependencies and whereish itself."""

ALONE = """
import sys
import numpy as np
import whereish as wh
lat, lon = wh.perturb(np.zeros(3000), np.zeros(3000), epsilon="1/km")
wh.sanitize("trips.csv", "again.parquet", lon="lon", lat="lat", mean_error="300 m", keep=["hour"])
sites = np.array([[0, 0], [500, 0], [0, 500]])
channel = wh.optimal_channel(sites, [0.5, 0.3, 0.2], "ln(4)/500 m")
channel.save("channel.npz")
distances = np.hypot(*(sites[:, None] - sites).transpose(2, 0, 1))
assert wh.audit.exact(channel.matrix, distances).factor <= np.log(4) / 500
noise, seed = wh.PlanarLaplace("1/km"), wh.SeededRandomness(1)
sampler = lambda secrets: noise.report(secrets, rng=seed)
found = wh.audit.statistical(
    sampler, (0, 0), (1000, 0), distance=1000, samples=20_000, rng=wh.SeededRandomness(2)
)
assert found.epsilon_lower <= 1e-3
heavy = {"rich", "pandas", "matplotlib", "highspy"} & set(sys.modules)
assert not heavy, heavy
"""
COMMANDS = """
whereish report --at 48.85412,2.33316 --mean-error '300 m'
whereish sanitize trips.csv -o public.parquet --lon lon --lat lat --mean-error '300 m' --keep hour
whereish audit channel.npz
whereish --help
"""


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    """The binaries of a new environment with the wheel alone, the wheel, and what it took."""
    here = tmp_path_factory.mktemp("five-jobs")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    if subprocess.run([*pip, "--version"], capture_output=True, check=False).returncode:
        pytest.skip("this environment has no pip")
    run(*pip, "wheel", "--quiet", "--no-deps", "-w", str(here), str(ROOT), cwd=here)
    (wheel,) = here.glob("*.whl")
    before = children_cpu()
    run(sys.executable, "-m", "venv", str(here / "venv"), cwd=here)
    binaries = here / "venv" / "bin"
    install(binaries, str(wheel))
    spent = children_cpu() - before
    work = here / "alone"
    work.mkdir()
    (work / "trips.csv").write_text(TRIPS)
    clean = {"PATH": f"{binaries}:/usr/bin:/bin", "HOME": str(work)}
    run("python", "-c", ALONE, cwd=work, **clean)
    run("bash", "-euo", "pipefail", "-c", COMMANDS, cwd=work, **clean)
    return binaries, wheel, spent, megabytes(here / "venv")


def megabytes(environment: Path) -> float:
    """The installed files without byte code, and without what a new environment has."""
    (packages,) = environment.glob("lib/python3*/site-packages")
    own = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence")
    homes = (path for path in packages.iterdir() if not path.name.startswith(own))
    files = (file for home in homes for file in (home, *home.rglob("*")))
    kept = (file for file in files if file.is_file() and "__pycache__" not in file.parts)
    return sum(file.stat().st_size for file in kept) / 1e6


def test_the_core_works_alone_and_weighs_what_is_said(core):
    *_, weight = core
    assert weight <= MOST_MB


def install(binaries: Path, asked: str) -> None:
    pip = str(binaries / "pip")
    run(pip, "install", "--quiet", "--disable-pip-version-check", asked, cwd=binaries)


@pytest.fixture(scope="module")
def installed(core):
    """The same with the extra that the README names."""
    binaries, wheel, spent, _ = core
    before = children_cpu()
    install(binaries, f"{wheel}[geo]")
    return binaries, spent + children_cpu() - before


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
