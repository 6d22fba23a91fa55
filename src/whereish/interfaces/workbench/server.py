"""``whereish workbench``: the application on a loopback port, until a signal ends it."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn

from whereish.errors import InvalidInput
from whereish.interfaces.http.connection import BoundedHead
from whereish.interfaces.http.logs import set_up_log
from whereish.interfaces.workbench.app import build
from whereish.interfaces.workbench.bench import Bench
from whereish.interfaces.workbench.security import SessionKey
from whereish.interfaces.workbench.uploads import Scratch
from whereish.interfaces.workbench.views.audit import load_sampler

__all__ = ["serve"]


def serve(
    *,
    port: int,
    open_browser: bool,
    say: Callable[[str], None],
    base_map: Path | None = None,
    upload_mb: int = 512,
    samplers: Sequence[str] = (),
) -> None:
    """Listen on 127.0.0.1 alone; `say` is told the address with the session's secret.

    WHEREISH_WORKBENCH_LOG=info logs every request's route, status and time, and nothing more.
    """
    if base_map is not None and not base_map.is_file():
        raise InvalidInput(f"there is no base map {base_map.name!r}")
    for one in samplers:
        load_sampler(one)
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError:
        listener.close()
        raise InvalidInput(f"port {port} is taken: choose another with --port") from None
    log_level = os.environ.get("WHEREISH_WORKBENCH_LOG", "warning")
    listener.listen(128)  # whoever reads the address may ask at once
    set_up_log(log_level)
    key = SessionKey()
    named = {one.rpartition(":")[2]: str(Path(one).resolve()) for one in samplers}
    scratch = Scratch(most_bytes=upload_mb << 20)
    # Whatever a library puts into the folder for temporary files goes with ours.
    tempfile.tempdir = os.environ["TMPDIR"] = str(scratch.folder)
    bench = Bench(scratch, base_map=base_map, samplers=named)
    address = f"http://127.0.0.1:{listener.getsockname()[1]}/#session={key.secret}"
    say(address)
    server = uvicorn.Server(
        uvicorn.Config(
            build(bench, key),
            http=BoundedHead,
            ws="none",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            log_level=log_level,
            timeout_graceful_shutdown=3,
        )
    )
    if open_browser:
        threading.Timer(0.5, lambda: webbrowser.open(address)).start()
    with contextlib.closing(listener):
        server.run(sockets=[listener])
