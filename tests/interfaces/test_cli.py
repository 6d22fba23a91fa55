from __future__ import annotations

import json
import subprocess
import sys

import pytest

from whereish.space.sphere import true_metres

AT = "48.85412,2.33316"


def whereish(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "whereish", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )


def test_report_prints_places_and_the_guarantee():
    done = whereish("report", "--at", AT, "--epsilon", "ln(4)/200 m", "-n", "5")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 5
    for line in lines:
        lat, lon = map(float, line.split(","))
        assert abs(lat - 48.85412) < 0.1
        assert abs(lon - 2.33316) < 0.1
    assert "0.0346574 *" in done.stderr, "five reports are charged five times"
    assert "48.85412" not in done.stderr


def test_report_as_json():
    done = whereish("report", "--at", AT, "--epsilon", "1.07/km", "--json")
    told = json.loads(done.stdout)
    assert len(told["reports"]) == 1
    assert told["guarantee"]["metric"]["factor"] == pytest.approx(1.07e-3)
    assert told["mean_error_m"] == pytest.approx(2000 / 1.07 * true_metres(), rel=1e-3)
    assert set(told) == {
        "reports",
        "reports_per_place",
        "guarantee",
        "mean_error_m",
        "radius_95_m",
    }


def test_report_reads_places_from_standard_input():
    done = whereish("report", "--at", "-", "--epsilon", "1/km", stdin=f"{AT}\n\n-33.86,151.2\n")
    assert len(done.stdout.splitlines()) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("--at", "48.85412", "--epsilon", "1/km"),
        ("--at", "48.85412,x", "--epsilon", "1/km"),
        ("--at", "91.85412,2.33316", "--epsilon", "1/km"),
        ("--at", "nan,2.33316", "--epsilon", "1/km"),
        ("--at", "inf,2.33316", "--epsilon", "1/km"),
        ("--at", AT, "--epsilon", "0.01"),
        ("--at", AT, "--epsilon", "0/m"),
        ("--at", AT, "--epsilon=-1/m"),
        ("--at", AT, "--epsilon", "nan/m"),
        ("--at", AT, "--epsilon", "1e4/m"),
        ("--at", AT, "--epsilon", "1e-10/m"),
        ("--at", AT),
        ("--at", AT, "--epsilon", "1/km", "-n", "0"),
        ("--at", AT, "--epsilon", "1/km", "--decimals", "99"),
    ],
    ids=" ".join,
)
def test_bad_questions_are_one_sentence_and_code_2(arguments):
    done = whereish("report", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert "48.85412" not in done.stderr
    assert "2.33316" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("48.85412,2.33316",),
        ("report", "--at", "48.85412,2.3", "2.33316", "--epsilon", "1/km"),
        ("report", "-48.85412,2.3"),
        ("report", "--at", AT, "--epsilon", "1/km", "--decimals", "48.85412"),
        ("report", "--at", AT, "--epsilon", "1/km", "--48.85412"),
    ],
    ids=" ".join,
)
def test_a_place_in_the_wrong_argument_is_not_repeated(arguments):
    done = whereish(*arguments)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "48.85" not in done.stderr
    assert "2.33" not in done.stderr


def test_sanitize(tmp_path):
    source, output = tmp_path / "in.csv", tmp_path / "out.parquet"
    source.write_text("id,lat,lon,note\n1,48.85412,2.33316,home\n2,48.86,2.34,work\n")
    done = whereish(
        *("sanitize", str(source), "-o", str(output), "--lon", "lon", "--lat", "lat"),
        *("--epsilon", "ln(4)/200 m", "--keep", "id", "--bbox", "2,48,3,49"),
    )
    assert done.returncode == 0, done.stderr
    assert "2 rows" in done.stdout
    assert "guarantee" in done.stdout
    assert output.exists()
    again = whereish(
        *("sanitize", str(source), "-o", str(output), "--lon", "lon", "--lat", "lat"),
        *("--epsilon", "ln(4)/200 m"),
    )
    assert again.returncode == 2
    assert "exists" in again.stderr
    seeded = whereish(
        *("sanitize", str(source), "-o", str(output), "--lon", "lon", "--lat", "lat"),
        *("--epsilon", "1/km", "--overwrite", "--insecure-seed", "1"),
    )
    assert "protects nobody" in seeded.stderr


def test_sanitize_tells_the_whole_exposure(tmp_path):
    """Two locations a row: k rows of one person expose 2 k reports, as the file says."""
    source, output = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text(
        "who,lat,lon,wlat,wlon\n" + "a,48.8,2.3,48.9,2.4\n" * 3 + "b,48.8,2.3,48.9,2.4\n"
    )
    job = (
        *("sanitize", str(source), "-o", str(output), "--lon", "lon", "--lat", "lat"),
        *("--location", "wlon,wlat", "--epsilon", "1/km", "--overwrite"),
    )
    done = whereish(*job)
    assert done.returncode == 0, done.stderr
    stated = json.loads((tmp_path / "out.csv.whereish.json").read_text())
    assert f"this holds for {stated['scope']}\n" in done.stdout
    assert "2 k times" in done.stdout
    assert "if all rows are one person's: 8 reports, together at 0.008/m" in done.stdout
    assert "whereish trace" in done.stdout
    ledger = str(tmp_path / "l.db")
    whereish("ledger", "create", ledger, "--cap", "1/m")
    charged = whereish(*job, "--ledger", ledger, "--subject", "who")
    assert "the most exposed subject has 6 reports, together at 0.006/m" in charged.stdout
    spent = json.loads(whereish("ledger", "statement", ledger, "a").stdout)["spent_per_m"]
    assert spent == pytest.approx(0.006)


def test_sanitize_says_that_a_track_is_one_persons(tmp_path):
    points = "".join(f'<trkpt lat="48.8{i}" lon="2.3"/>' for i in range(5))
    (tmp_path / "in.gpx").write_text(
        '<gpx version="1.1" creator="x" xmlns="http://www.topografix.com/GPX/1/1">'
        f"<trk><trkseg>{points}</trkseg></trk></gpx>"
    )
    done = whereish(
        *("sanitize", str(tmp_path / "in.gpx"), "-o", str(tmp_path / "out.gpx")),
        *("--epsilon", "1/km"),
    )
    assert done.returncode == 0, done.stderr
    assert "5 reports, together at 0.005/m" in done.stdout
    assert "one person's track: noise that is drawn anew" in done.stdout
    assert "whereish trace" in done.stdout


@pytest.mark.parametrize(
    ("text", "extra"),
    [
        ("", ()),
        ("lat,lon\n", ()),
        ("lat,lon\n48.85412,nope\n", ()),
        ("lat,lon\n98.85412,2.33316\n", ()),
        ("lat,lon\nnan,2.33316\n", ()),
        ("lat,lon\n2.33316,48.85412\n", ("--bbox", "2,48,3,49")),
        ("lat,lon\n48.85412,2.33316\n", ("--bbox", "3,48,2,49")),
        ("lat,lon\n48.85412,2.33316\n", ("--keep", "absent")),
    ],
)
def test_sanitize_refuses_in_one_sentence_and_writes_nothing(tmp_path, text, extra):
    source, output = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text(text)
    done = whereish(
        *("sanitize", str(source), "-o", str(output), "--lon", "lon", "--lat", "lat"),
        *("--epsilon", "1/km", *extra),
    )
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "48.85412" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_internal_errors_keep_their_message(tmp_path, monkeypatch):
    code = (
        "import sys, whereish.units as u\n"
        "def broken(*a, **k): raise RuntimeError('48.85412')\n"
        "import whereish.mechanisms.noise.globe_laplace as g\n"
        "g.GlobeLaplace.report = broken\n"
        "sys.argv = ['whereish', 'report', '--at', '48.85412,2.3', '--epsilon', '1/km']\n"
        "from whereish.interfaces.cli import main; main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "RuntimeError" in done.stderr
    assert "48.85412" not in done.stderr


def test_help_and_version():
    assert "sanitize" in whereish("--help").stdout
    assert whereish("--version").stdout.startswith("whereish")
    assert whereish().returncode == 2
    assert whereish("nonsense").returncode == 2


def test_a_ledger_from_the_command_line(tmp_path):
    (tmp_path / "in.csv").write_text(
        "who,lon,lat,time,wlon,wlat\n" + "ann,2.33316,48.85412,2026-01-01T10:11:12Z,2.4,48.9\n" * 3
    )
    (tmp_path / "blocks.csv").write_text("lon,lat\n2.3,48.8\n2.4,48.9\n")
    ledger = str(tmp_path / "l.db")
    made = whereish("ledger", "create", ledger, "--cap", "8/km", "--window-s", "86400")
    assert "8/km per subject in any 86400 s" in made.stdout
    job = (
        *("sanitize", str(tmp_path / "in.csv"), "--lon", "lon", "--lat", "lat"),
        *("--epsilon", "1/km", "--location", "wlon,wlat", "--coarsen", "time=1 h"),
        *("--remap", str(tmp_path / "blocks.csv"), "--ledger", ledger, "--subject", "who"),
    )
    done = whereish(*job, "-o", str(tmp_path / "a.csv"))
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert lines[0] == '"lon","lat","wlon","wlat","time"'
    assert all("10:00:00" in line and line[:3] in ("2.3", "2.4") for line in lines[1:])
    statement = json.loads(whereish("ledger", "statement", ledger, "ann").stdout)
    assert statement["spent_per_m"] == pytest.approx(0.006)
    again = whereish(*job, "-o", str(tmp_path / "b.csv"))
    assert again.returncode == 2
    assert "too little left" in again.stderr
    assert not (tmp_path / "b.csv").exists()
    nothing = whereish("ledger", "abandon", ledger, str(tmp_path / "b.csv"))
    assert "no unfinished job" in nothing.stdout
    for wrong in (("--location", "x"), ("--coarsen", "time")):
        assert whereish(*job, "-o", str(tmp_path / "b.csv"), *wrong).returncode == 2


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (
            ("report", "--epsilonn", "1"),
            "no such option --epsilonn; did you mean --epsilon? see 'whereish report --help'",
        ),
        (("sanitise", "in.csv"), "; did you mean sanitize? see 'whereish --help'"),
    ],
)
def test_a_mistyped_option_or_command_is_answered_with_the_nearest(arguments, near):
    done = whereish(*arguments)
    assert done.returncode == 2
    assert done.stderr.rstrip().endswith(near)


@pytest.mark.parametrize("arguments", [("report", "--48.85412"), ("48.85412,2.33316",)])
def test_what_may_be_a_place_is_not_quoted_where_an_option_or_command_should_be(arguments):
    done = whereish(*arguments)
    assert done.returncode == 2
    assert "48.8" not in done.stderr + done.stdout
    assert "did you mean" not in done.stderr
