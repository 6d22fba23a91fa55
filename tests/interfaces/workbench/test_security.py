"""Who may ask, and what is refused: other sites, other users, and files that mean harm."""

from __future__ import annotations

import io
import json
import socket
import struct
import time
import zipfile
from pathlib import Path

import pytest

from whereish.interfaces.workbench.security import CSP

import workbench_process

CLOUD = {
    "place": {"lon": -75.1635, "lat": 39.9526},
    "spec": {"kind": "laplace", "per_m": 0.007},
    "count": 10,
}


def test_the_page_comes_with_its_policy(bench):
    for path in ("/", "/app.js", "/app.css", "/LICENSES.txt"):
        status, headers, body = bench.ask("GET", path, headers={"X-Whereish": None})
        assert status == 200
        assert body
        assert headers["content-security-policy"] == CSP
        assert headers["x-content-type-options"] == "nosniff"
    wanted = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:;"
        " connect-src 'self'"
    )
    assert CSP.startswith(wanted)
    assert "unsafe" not in CSP
    status, headers, _ = bench.ask("POST", "/api/place/cloud", b"{")
    assert status == 400
    assert headers["content-security-policy"] == CSP


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example:80"}, 421),
        ({"Host": "localhost.evil.example"}, 421),
        ({"Host": None}, 421),
        ({"Host": "0.0.0.0"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"X-Whereish": None}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Cookie": None}, 401),
        ({"Cookie": "whereish-0=guess"}, 401),
    ],
)
def test_who_may_ask(bench, headers, status):
    found, _, body = bench.ask("POST", "/api/place/cloud", CLOUD, headers=headers)
    assert found == status
    assert b"39.95" not in body[:2000] or status == 200


def test_other_programs_cookies_do_no_harm(bench):
    """Cookies of 127.0.0.1 are shared by all its ports."""
    mixed = {"Cookie": f'a b="c; _xsrf={{"x": 1}}; {bench.cookie}; d'}
    assert bench.ask("POST", "/api/place/cloud", CLOUD, headers=mixed)[0] == 200


def test_a_form_of_another_site_does_nothing(bench):
    """What a page elsewhere can send without asking first: a form, a picture, a preflight."""
    form = {"Content-Type": "application/x-www-form-urlencoded", "X-Whereish": None}
    assert bench.ask("POST", "/api/jobs", b"a=b", headers=form)[0] == 403
    assert bench.ask("GET", "/api/jobs")[0] == 405
    assert (
        bench.ask("OPTIONS", "/api/place/cloud", headers={"Origin": "http://e.example"})[0] == 405
    )
    assert bench.ask("GET", "/?place=39.95,-75.16")[0] == 400


def test_another_users_guess_of_the_secret_is_refused(bench):
    body = {"secret": "guess"}
    status, headers, _ = bench.ask("POST", "/api/session", body, headers={"Cookie": None})
    assert status == 401
    assert "set-cookie" not in headers
    _, headers, _ = bench.ask("POST", "/api/session", {"secret": bench.secret})
    assert "HttpOnly" in headers["set-cookie"]
    assert "SameSite=Strict" in headers["set-cookie"]


@pytest.mark.parametrize(
    "path",
    [
        "/../pyproject.toml",
        "/%2e%2e/app.py",
        "/..%2fserver.py",
        "/world.pmtiles/..",
        "/towns.tsv.gz",
    ],
)
def test_no_path_leads_out_of_the_page(bench, path):
    assert bench.ask("GET", path)[0] in (400, 404)


@pytest.mark.parametrize("name", ["../../evil.csv", "..%2f..%2fevil.csv", "/etc/cron.d/evil.csv"])
def test_an_uploads_name_is_no_path(bench, name):
    status, told = bench.upload(name, b"lon,lat\n1,2\n")
    assert status == 200
    assert told["name"] == "evil.csv"
    folders = workbench_process.scratch_folders()
    assert folders
    assert not [path for folder in folders for path in folder.rglob("*evil*")]
    above = {folder.parents[k] for folder in folders for k in (0, 1)}
    elsewhere = (*above, Path("/etc/cron.d"))
    assert not [folder for folder in elsewhere if (folder / "evil.csv").exists()]


def test_only_files_of_known_kinds(bench):
    for name in ("evil.exe", "evil", "evil.csv.html"):
        status, told = bench.upload(name, b"x")
        assert status == 422
        assert "must end in one of" in told["detail"]
    assert bench.upload("none.csv", b"")[0] == 422


def bomb(ratio_mb: int) -> bytes:
    """An .npz that unpacks to so many megabytes of zeros."""
    packed = io.BytesIO()
    head = b"\x93NUMPY\x01\x00"
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({ratio_mb << 20},), }}".encode()
    text += b" " * (117 - len(text)) + b"\n"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        content = head + struct.pack("<H", len(text)) + text + bytes(ratio_mb << 20)
        archive.writestr("weights.npy", content)
    return packed.getvalue()


def test_a_zip_bomb_is_refused(bench):
    packed = bomb(40)
    assert len(packed) < (40 << 20) / 900
    status, told = bench.upload("bomb.npz", packed)
    assert status == 413
    assert "unpacks" in told["detail"]


def test_five_gigabytes_are_refused_before_they_are_read(bench):
    headers = {
        "Content-Length": str(5 << 30),
        "Content-Type": "application/octet-stream",
        "X-Filename": "large.csv",
    }
    started = time.monotonic()
    status, _, told = bench.ask("POST", "/api/uploads", b"", headers=headers)
    assert status == 413
    assert "512 MB" in json.loads(told)["detail"]
    assert time.monotonic() - started < 10


def test_an_upload_that_lies_about_its_length_is_cut_off(tmp_path):
    """Chunks without a length are refused, and a limit is one of bytes that came."""
    with workbench_process.workbench(tmp_path, "--upload-mb", "1") as small:
        assert small.upload("a.csv", b"x" * (1 << 20))[0] == 200
        assert small.upload("a.csv", b"x" * ((1 << 20) + 1))[0] == 413
        with socket.create_connection(("127.0.0.1", small.port), timeout=30) as raw:
            head = (
                f"POST /api/uploads HTTP/1.1\r\nHost: 127.0.0.1:{small.port}\r\n"
                f"Cookie: {small.cookie}\r\nX-Whereish: workbench\r\nX-Filename: a.csv\r\n"
                "Transfer-Encoding: chunked\r\n\r\n"
            )
            raw.sendall(head.encode())
            assert b" 400 " in raw.recv(200)


def test_bodies_are_bounded_and_quoted_nowhere(bench):
    large = {"Content-Length": str(5 << 20)}
    assert bench.ask("POST", "/api/place/search", b"", headers=large)[0] == 413
    wrong = {**CLOUD, "place": {"lon": "-75.98765", "lat": 39.98765}}
    status, _, told = bench.ask("POST", "/api/place/cloud", wrong)
    assert status == 422
    assert b"98765" not in told
    assert b"place.lon" in told
    unknown = {**CLOUD, "extra": 39.98765}
    status, _, told = bench.ask("POST", "/api/place/cloud", unknown)
    assert status == 422
    assert b"98765" not in told
    beyond = {**CLOUD, "place": {"lon": 500.98765, "lat": 39.98765}}
    status, _, told = bench.ask("POST", "/api/place/cloud", beyond)
    assert status == 422
    assert b"98765" not in told
