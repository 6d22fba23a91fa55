"""The scripts that fetch what tests need: they take nothing away, and a lack is no failure."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"
BUILDERS = ("hdfs-jars.sh", "ogrinfo-parquet.sh")
TOOLS = ("sh", "basename", "dirname", "mkdir", "mktemp", "rm", "mv", "ls", "touch", "tar", "gzip")


@pytest.fixture
def tools(tmp_path):
    """A folder of programs: plain ones, and those that a test puts there."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in (*TOOLS, "cat", "sed", "uname"):
        (folder / name).symlink_to(shutil.which(name))
    return folder


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def run(script: str, *arguments, tools: Path, home: Path = Path("/nowhere"), **environment):
    return subprocess.run(
        ["/bin/sh", SCRIPTS / script, *arguments],
        env={"PATH": str(tools), "HOME": str(home), **environment},
        check=False,
        capture_output=True,
        text=True,
    )


def contents(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_text() for path in files}


@pytest.fixture
def peopled(tmp_path):
    """Somebody's folder with things of common names."""
    folder = tmp_path / "mine"
    for name in ("work", "arrow", "apt", "archive", "wheel"):
        (folder / name).mkdir(parents=True)
        (folder / name / "letter.txt").write_text(name)
    return folder


def failing_build(tools: Path) -> dict[str, str]:
    """A system on which the builders come as far as fetching, and fail."""
    program(tools / "ogrinfo", 'case "$1" in --version) echo "GDAL 3.6.2" ;; *) echo GPX ;; esac')
    program(tools / "dpkg-query", "echo 3.6.2")
    program(tools / "g++", "exit 1")
    program(tools / "apt-get", 'case "$*" in *print-uris*) ;; *) exit 100 ;; esac')
    return {"PYTHON": str(program(tools / "python", "exit 1"))}


@pytest.mark.parametrize("script", BUILDERS)
def test_nothing_that_is_not_its_own_is_removed(tools, peopled, script):
    before = contents(peopled)
    done = run(script, peopled, tools=tools, work=str(peopled), **failing_build(tools))
    assert done.returncode == 1
    assert "cannot be fetched" in done.stderr
    assert contents(peopled) == before
    assert len(list(peopled.iterdir())) == 5


@pytest.mark.parametrize(("script", "name"), [(BUILDERS[0], "jars"), (BUILDERS[1], "drivers")])
def test_what_has_the_name_of_the_result(tools, tmp_path, script, name):
    (tmp_path / "mine" / name).mkdir(parents=True)
    (tmp_path / "mine" / name / "letter.txt").write_text("kept")
    done = run(script, tmp_path / "mine", tools=tools, **failing_build(tools))
    assert done.returncode == 1
    assert f"{name} is there and is not ours" in done.stderr
    assert contents(tmp_path / "mine") == {f"{name}/letter.txt": "kept"}


@pytest.mark.parametrize("script", BUILDERS)
@pytest.mark.parametrize("home", [True, False])
def test_neither_the_root_nor_a_home(tools, tmp_path, script, home):
    folder = tmp_path if home else Path("/")
    done = run(script, folder, tools=tools, home=tmp_path, **failing_build(tools))
    assert done.returncode == 1
    assert "neither / nor your home" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["tools"]


def test_the_jars_of_hdfs(tools, tmp_path):
    with tarfile.open(tmp_path / "source.tar.gz", "w:gz") as archive:
        name = "pyspark-3.0.1/deps/jars/hadoop-hdfs-2.7.4.jar"
        archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    fetching = f"""
    case "$*" in *--require-hashes*) ;; *) exit 1 ;; esac
    while [ $# -gt 0 ]; do
      case "$1" in -d) into=$2 ;; -r) list=$2 ;; esac
      shift
    done
    sed -n '/^pyspark==3.0.1 --hash=sha256:[0-9a-f]*$/!q1' "$list" || exit 1
    mkdir "$into" && cat {tmp_path}/source.tar.gz >"$into/pyspark-3.0.1.tar.gz"
    """
    plan = {"tools": tools, "PYTHON": str(program(tools / "python", fetching))}
    done = run("hdfs-jars.sh", tmp_path / "new", **plan)
    assert done.returncode == 0, done.stderr
    assert set(contents(tmp_path / "new")) == {"jars/hadoop-hdfs-2.7.4.jar", "jars/.ready"}
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["jars"]
    program(tools / "python", "exit 1")
    assert run("hdfs-jars.sh", tmp_path / "new", **plan).returncode == 0


@pytest.mark.parametrize(("user", "why"), [(0, "apt-get cannot install it"), (1, "is not root")])
def test_packages_that_cannot_be_installed(tools, user, why):
    program(tools / "id", f"echo {user}")
    program(tools / "apt-get", "exit 100")
    done = run("system-packages.sh", tools=tools)
    assert done.returncode == 0
    assert why in done.stdout
    assert " java" in done.stdout
    assert "tests are skipped" in done.stdout


def test_packages_that_are_installed(tools):
    program(tools / "id", "echo 0")
    for present in ("chromium", "initdb", "mosquitto", "postgis"):
        program(tools / present, "")
    got = f'echo "$@" >>{tools}/log; [ "$1" = update ] || mv {tools}/brought {tools}/java'
    program(tools / "brought", "")
    program(tools / "apt-get", got)
    done = run("system-packages.sh", tools=tools)
    assert (done.returncode, done.stdout) == (0, "")
    assert "openjdk-17-jre-headless" in (tools / "log").read_text()
