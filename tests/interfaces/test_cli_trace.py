"""The command ``whereish trace``: lines in, lines out, and what they cost."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import pytest

from whereish.errors import BudgetExceeded, InvalidInput
from whereish.mechanisms.traces.budget import FixedUtility
from whereish.randomness import SeededRandomness

STILL = "\n".join(f"{60 * i},48.85412,2.33316" for i in range(30)) + "\n"


def trace(*arguments: str, stdin: str = STILL) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "whereish", "trace", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )


def test_each_line_is_reported_with_its_time():
    done = trace("--tests", "every", "--accuracy", "200 m", "--total", "1/m")
    assert done.returncode == 0, done.stderr
    lines = [line.split(",") for line in done.stdout.splitlines()]
    assert [line[0] for line in lines] == [str(60 * i) for i in range(30)]
    assert lines[0][3] == "hard"
    assert {line[3] for line in lines} <= {"hard", "easy"}
    for before, line in pairwise(lines):
        if line[3] == "easy":
            assert line[1:3] == before[1:3]
    assert "30 reports" in done.stderr
    assert "ex post" in done.stderr
    assert "guarantee: 1 * maximum over 30 entries" in done.stderr
    assert "48.85412" not in done.stderr


def test_times_may_be_dates_or_absent():
    dated = "2026-01-01T10:00:00Z,48.85,2.33\n\n2026-01-01 10:01,48.85,2.33\n"
    done = trace("--steps", "2", "--total", "0.1/m", stdin=dated)
    assert done.returncode == 0, done.stderr
    assert [line.split(",")[0] for line in done.stdout.splitlines()] == [
        "2026-01-01T10:00:00Z",
        "2026-01-01T10:01:00Z",
    ]
    bare = trace("--accuracy", "200 m", stdin="48.85,2.33\n48.85,2.33\n")
    assert [line.count(",") for line in bare.stdout.splitlines()] == [2, 2]


def test_trace_writes_times_anew():
    """The text of a time may hold a zone, a fraction of any length, or odd spelling."""
    places = "48.85412,2.33316"
    times = ["+1e3", "1001.4885412233316", "2026-01-01T10:00:00.488541+05:30"]
    times += ["2026-01-01T10:00:00.000488-03:00"]
    done = trace("--accuracy", "200 m", stdin="".join(f"{time},{places}\n" for time in times))
    assert done.returncode == 0, done.stderr
    assert [line.split(",")[0] for line in done.stdout.splitlines()] == [
        "1000",
        "1001.489",
        "2026-01-01T04:30:00.488Z",
        "2026-01-01T13:00:00Z",
    ]


def test_the_trace_ends_with_its_budget():
    done = trace("--accuracy", "200 m", "--total", "0.05/m", stdin=STILL * 1)
    assert done.returncode == 2
    assert 0 < len(done.stdout.splitlines()) < 30
    assert "cannot pay for another report" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        ((), STILL),
        (("--accuracy", "200 m", "--steps", "3"), STILL),
        (("--steps", "3"), STILL),
        (("--accuracy", "200"), STILL),
        (("--accuracy", "200 m"), ""),
        (("--accuracy", "200 m"), "48.85412\n"),
        (("--accuracy", "200 m"), "1,48.85412,x\n"),
        (("--accuracy", "200 m"), "yesterday,48.85412,2.33316\n"),
        (("--accuracy", "200 m"), "nan,48.85412,2.33316\n"),
        (("--accuracy", "200 m"), "48.85412,2.33316,2.33316\n"),
        (("--accuracy", "200 m"), "0001-01-01T00:00+05:00,48.85412,2.33316\n"),
        (("--accuracy", "200 m"), "1,98.85412,2.33316\n"),
        (("--accuracy", "200 m"), "1,nan,2.33316\n"),
        (("--accuracy", "200 m", "--total", "1e-4/m"), STILL),
        (("--accuracy", "200 m", "--top-speed", "0"), STILL),
    ],
    ids=str,
)
def test_bad_questions_are_one_sentence_and_code_2(arguments, stdin):
    done = trace(*arguments, stdin=stdin)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert "48.85412" not in done.stderr
    assert "2.33316" not in done.stderr


def test_times_that_go_back_are_refused():
    done = trace("--accuracy", "200 m", stdin="2,48.85412,2.3\n1,48.85412,2.3\n")
    assert done.returncode == 2
    assert "go back" in done.stderr


def test_a_track_from_a_file_and_a_session_that_goes_on(tmp_path):
    from click.testing import CliRunner

    from whereish.interfaces.cli.trace import command

    def run(*words):
        return CliRunner().invoke(command, [*words, "--accuracy", "300 m", "--total", "1/m"])

    rows = [f"2026-01-31T08:{i:02d}:00Z,{2.35 + 0.001 * i},48.85" for i in range(9)]
    table = tmp_path / "track.csv"
    table.write_text("\n".join(["at,lon,lat", *rows]))
    done = run(str(table), "--lon", "lon", "--lat", "lat", "--time", "at")
    assert done.exit_code == 0
    assert len([line for line in done.stdout.splitlines() if line.startswith("2026")]) == 9
    points = "".join(
        f'<trkpt lat="48.85" lon="{2.35 + 0.001 * i}">'
        f"<time>2026-01-31T08:{i:02d}:00Z</time></trkpt>"
        for i in range(9)
    )
    gpx = tmp_path / "track.gpx"
    gpx.write_text(
        '<gpx version="1.1" creator="x" xmlns="http://www.topografix.com/GPX/1/1">'
        f"<trk><trkseg>{points}</trkseg></trk></gpx>"
    )
    done = run(str(gpx))
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("2026-01-31T08:00:00Z,48.8")
    half = tmp_path / "half.csv"
    half.write_text("\n".join(["at,lon,lat", *rows[:4]]))
    rest = tmp_path / "rest.csv"
    rest.write_text("\n".join(["at,lon,lat", *rows[4:]]))
    where = ("--lon", "lon", "--lat", "lat", "--time", "at", "--session", str(tmp_path / "s.json"))
    assert run(str(half), *where).exit_code == 0
    kept = (tmp_path / "s.json").read_text()
    assert "4 reports" not in kept
    done = run(str(rest), *where)
    assert done.exit_code == 0
    assert "9 reports" in done.output
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(".")) == []


def drive_file(tmp_path, count=400, times=True):
    """A straight drive of 10 m/s with a point every 5 s, as a table."""
    rows = [
        (f"{5 * i}," if times else ",") + f"{2.35 + 0.00068 * i:.6f},48.85" for i in range(count)
    ]
    table = tmp_path / "drive.csv"
    table.write_text("\n".join(["at,lon,lat", *rows]))
    return str(table), "--lon", "lon", "--lat", "lat", "--time", "at"


def run(*words):
    from click.testing import CliRunner

    from whereish.interfaces.cli.trace import command

    return CliRunner().invoke(command, words)


class Same(SeededRandomness):
    """The same words every time, for a command that takes no seed and says nothing of one."""

    reproducible = False


def test_a_file_is_smoothed_as_a_whole_and_live_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr("whereish.randomness._PROCESS_WIDE", Same(1))
    file = drive_file(tmp_path)
    whole = run(*file, "--accuracy", "500 m", "--total", "1/m")
    assert whole.exit_code == 0, whole.output
    assert "reported as a whole, smoothed once all of it was drawn" in whole.stderr
    assert "400 reports" in whole.stderr
    assert "these very reports, with what they spent, keep: " in whole.stderr
    assert "ex post" in whole.stderr
    assert "guarantee: 1 * maximum over 400 entries" in whole.stderr
    live = run(*file, "--live", "--accuracy", "500 m", "--total", "1/m")
    assert live.exit_code == 0, live.output
    assert "place by place (live), not smoothed" in live.stderr
    assert "smoothed once" not in live.stderr
    kept = run(*file, "--session", str(tmp_path / "s"), "--accuracy", "500 m", "--total", "1/m")
    assert "place by place (live), not smoothed" in kept.stderr

    def rows(done):
        return [line.split(",") for line in done.stdout.splitlines()]

    hard = {name: sum(r[3] == "hard" for r in rows(d)) for name, d in (("w", whole), ("l", live))}
    assert hard["w"] < hard["l"], "a whole trace waits longer for its next noisy report"
    # Live steps jump with each noisy report; a smoothed trace has no jumps.
    for done, jumps in ((whole, False), (live, True)):
        lat = [float(row[1]) for row in rows(done)]
        assert (max(abs(b - a) for a, b in pairwise(lat)) > 0.0009) is jumps


def test_a_whole_file_that_the_budget_cannot_pay_ends_with_what_it_could(tmp_path):
    done = run(*drive_file(tmp_path), "--accuracy", "200 m", "--total", "0.1/m")
    assert done.exit_code == 2 or isinstance(done.exception, BudgetExceeded)
    assert 0 < len(done.stdout.splitlines()) < 400
    assert "guarantee: 0.1 * maximum over 400 entries" in done.stderr, "of all places given"
    nothing = run(*drive_file(tmp_path), "--accuracy", "200 m", "--total", "1e-4/m")
    assert isinstance(nothing.exception, BudgetExceeded)
    assert nothing.stdout == ""


def test_without_a_total_the_worst_case_of_so_many_places_is_told(tmp_path):
    most = FixedUtility("500 m").most(10)
    done = run(*drive_file(tmp_path, 10), "--accuracy", "500 m")
    assert done.exit_code == 0, done.output
    assert "worst case of so many places" in done.stderr
    stated = float(done.stderr.rpartition("guarantee: ")[2].split(" * ")[0])
    assert stated == pytest.approx(float(most), rel=1e-4)


def test_a_fixed_rate_is_not_smoothed_and_does_not_say_so(tmp_path):
    done = run(*drive_file(tmp_path, 20), "--steps", "20", "--total", "0.5/m")
    assert done.exit_code == 0, done.output
    assert "reported as a whole\n" in done.stderr


def test_a_whole_file_is_refused_before_anything_leaves(tmp_path):
    file = drive_file(tmp_path, 30)
    table = tmp_path / "drive.csv"
    table.write_text(table.read_text().replace("\n145,", "\n5,"))
    done = run(*file, "--accuracy", "500 m")
    assert isinstance(done.exception, InvalidInput)
    assert "go back" in str(done.exception)
    assert done.stdout == ""
    for text, words in (
        ("at,lon,lat\n", "at least one"),
        ("at,lon,lat\n1,2.3,48.8\n,2.3,48.8\n", "have a time"),
    ):
        table.write_text(text)
        done = run(*file, "--accuracy", "500 m")
        assert isinstance(done.exception, InvalidInput)
        assert words in str(done.exception)
