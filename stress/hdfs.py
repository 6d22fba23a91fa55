"""A real HDFS of one name node and one data node, from the jars of ``scripts/hdfs-jars.sh``."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

_SERVERS = "org.apache.hadoop.hdfs.server"
_OPEN = [
    word
    for package in ("java.lang", "java.nio", "sun.nio.ch")
    for word in ("--add-opens", f"java.base/{package}=ALL-UNNAMED")
]


def jars() -> Path | None:
    """The folder of the jars, if they were fetched."""
    folder = os.environ.get("WHEREISH_HDFS")
    return Path(folder) / "jars" if folder and Path(folder, "jars", ".ready").exists() else None


@contextlib.contextmanager
def server(folder: Path) -> Iterator[str]:
    """The address of a new, empty file system, which is gone afterwards."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"hdfs://127.0.0.1:{probe.getsockname()[1]}"
    _configure(folder, address)
    _ran(folder, "namenode.NameNode", "-format", "-force").wait(timeout=120)
    started = []
    try:
        started.append(_ran(folder, "namenode.NameNode"))
        started.append(_ran(folder, "datanode.DataNode"))
        _await(address)
        yield address
    finally:
        for process in reversed(started):
            process.kill()
            process.wait(timeout=60)


def _configure(folder: Path, address: str) -> None:
    settings = {
        "core-site": {"fs.defaultFS": address, "hadoop.tmp.dir": str(folder / "tmp")},
        "hdfs-site": {
            "dfs.replication": "1",
            "dfs.webhdfs.enabled": "false",
            "dfs.namenode.name.dir": f"file://{folder}/names",
            "dfs.datanode.data.dir": f"file://{folder}/blocks",
            "dfs.namenode.http-address": "127.0.0.1:0",
            "dfs.datanode.address": "127.0.0.1:0",
            "dfs.datanode.http.address": "127.0.0.1:0",
            "dfs.datanode.ipc.address": "127.0.0.1:0",
        },
    }
    for site, values in settings.items():
        lines = [
            f"<property><name>{name}</name><value>{value}</value></property>"
            for name, value in values.items()
        ]
        (folder / f"{site}.xml").write_text(f"<configuration>{''.join(lines)}</configuration>")
    for pages in ("hdfs", "datanode", "static"):  # the servers insist on having web pages
        (folder / "webapps" / pages / "WEB-INF").mkdir(parents=True)
        (folder / "webapps" / pages / "WEB-INF" / "web.xml").write_text("<web-app/>")


def _ran(folder: Path, name: str, *arguments: str) -> subprocess.Popen[bytes]:
    classes = f"{folder}:{jars()}/*"
    command = ["java", "-Xmx256m", *_OPEN, "-cp", classes, f"{_SERVERS}.{name}", *arguments]
    with (folder / "servers.log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=folder)


def _await(address: str) -> None:
    host, _, port = address.removeprefix("hdfs://").partition(":")
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex((host, int(port))) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("the name node did not come up")
