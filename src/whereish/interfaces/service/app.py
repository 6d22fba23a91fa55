"""The application of one worker, from its configuration."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import sys
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from starlette.applications import Starlette
from starlette.types import ASGIApp, Scope
from uvicorn.config import STARTUP_FAILURE

from whereish.errors import LedgerUnavailable, WhereishError
from whereish.interfaces.http.handlers import HANDLERS
from whereish.interfaces.http.logs import set_up_log
from whereish.interfaces.http.problems import Problem
from whereish.interfaces.service.config import Config
from whereish.interfaces.service.layers import Guard
from whereish.interfaces.service.metrics import Metrics
from whereish.interfaces.service.offered import offer, offer_trace
from whereish.interfaces.service.openapi import document, page
from whereish.interfaces.service.others import forward_to
from whereish.interfaces.service.places import open_source
from whereish.interfaces.service.routes import Service, routes
from whereish.interfaces.service.sessions import Sessions
from whereish.interfaces.service.till import Names, Till
from whereish.interfaces.service.tokens import TokenFile, secret_key
from whereish.publish.ledger import open_ledger
from whereish.publish.ledger.ledger import Ledger

__all__ = ["CANNOT_START", "CONFIG", "FOLDER", "TOKENS", "build", "worker"]

CONFIG: Final = "WHEREISH_SERVICE_CONFIG"
"""Where a worker finds the configuration that the command line has read and checked."""
TOKENS: Final = "tokens.json"
FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"
"""What several workers share: their counts, and a note by one that could not start."""
CANNOT_START: Final = "cannot-start"

_PAUSES_S: Final = (1, 2, 4, 8)

errors = logging.getLogger("whereish.service")


def build(config: Config, beside: Path) -> ASGIApp:
    """Load and verify all mechanisms, then answer; `beside` is where files are looked for."""
    offered = [offer(said, beside) for said in config.mechanism]
    traces = [offer_trace(said) for said in config.trace]
    ledger = _ledger_of(config)
    said = document()
    service = Service(
        config,
        {one.id: one for one in offered},
        {one.id: one for one in traces},
        Names(secret_key(config.folder)),
        Metrics(),
        document=msgspec.json.encode(said),
        page=page(said),
        source=open_source(config.places, config.source, beside),
        forward=None if config.owntracks is None else forward_to(config.owntracks),
    )
    for one in offered:  # compiled kernels are loaded before the first request
        with contextlib.suppress(Problem):
            one.report([(0.0, 0.0)])

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        if ledger is not None:
            keep_s = 3600 * config.limits.idempotency_hours
            service.till = Till(ledger, keep_s=keep_s)
            service.sessions = Sessions(service.till, service.names, service.traces)
        try:
            yield
        finally:
            if service.till is not None:
                await service.till.close()

    table = routes(service)
    app = Starlette(
        routes=table,
        lifespan=lifespan,
        exception_handlers=HANDLERS,
    )
    app.router.redirect_slashes = False
    known = {route.endpoint: route.path for route in table}

    def route(scope: Scope) -> str:
        endpoint = scope.get("endpoint")
        return known.get(endpoint, "(none)") if endpoint is not None else "(none)"

    tokens = TokenFile(config.folder / TOKENS) if config.auth else None
    return Guard(app, route, tokens, config.limits, service.metrics)


def _ledger_of(config: Config) -> Ledger | None:
    """The ledger, waited for a little: a database may come up after the service."""
    if config.ledger is None:
        return None
    config.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    budget = config.ledger
    opened = partial(open_ledger, config.ledger_address, cap=budget.cap, window_s=budget.window_s)
    for pause_s in _PAUSES_S:
        try:
            return opened()
        except LedgerUnavailable:
            errors.warning("the ledger cannot be used; trying again in %d s", pause_s)
            time.sleep(pause_s)
    return opened()


def worker() -> ASGIApp:
    """The application in a process that uvicorn has started.

    Where it cannot be made, one of several workers says so and ends in the way that tells uvicorn
    not to start it again; a single one raises the error.
    """
    # SQLite lets go of the interpreter at every row; with the usual 5 ms the thread that commits
    # would wait that long, row by row, while the event loop is busy.
    sys.setswitchinterval(1e-4)
    said = msgspec.json.decode(os.environ[CONFIG].encode(), type=dict[str, str])
    config = msgspec.json.decode(said["config"], type=Config)
    set_up_log(config.log_level)
    try:
        made = build(config, Path(said["beside"]))
    except WhereishError as error:
        if config.workers == 1:
            raise
        errors.error("the service cannot start: %s", error)
        Path(os.environ[FOLDER], CANNOT_START).touch()
        raise SystemExit(STARTUP_FAILURE) from None
    # What was loaded stays: no collection looks through it again while requests wait.
    gc.collect()
    gc.freeze()
    return made
