"""``whereish serve``: the HTTP service."""

from __future__ import annotations

from pathlib import Path

import click

from whereish.errors import InvalidInput, MissingExtra, NotWritten
from whereish.interfaces.cli.parameters import BUDGET, WholeType, file_option, level_options
from whereish.units import Epsilon

__all__ = ["command"]


@click.command("serve")
@file_option(
    "--config",
    "path",
    help="TOML file; WHEREISH_SERVE_... environment variables override it.",
)
@level_options("of each report", noise="Without a file: Laplace noise")
@click.option(
    "--cap", type=BUDGET, help="Without a file: the budget of each subject, as '10 x 300 m'."
)
@click.option("--host", help="Address to listen on; 127.0.0.1 unless configured.")
@click.option("--port", type=WholeType(0, 65_535), help="Port; 8790 unless configured.")
@click.option("--workers", type=WholeType(1, 64), help="Processes.")
@click.option("--no-auth", is_flag=True, help="Ask for no token; on loopback only.")
def command(
    path: Path | None,
    epsilon: Epsilon | None,
    cap: Epsilon | None,
    host: str | None,
    port: int | None,
    workers: int | None,
    no_auth: bool,
) -> None:
    """Serve reports, traces and budgets over HTTP.

    Mechanisms are loaded and verified before the first answer.  At the first start a token is
    made and printed, once.  Places come in bodies of POST requests only, and are never logged.
    """
    try:
        import msgspec
        import uvicorn  # noqa: F401
    except ImportError:
        raise MissingExtra("msgspec, starlette and uvicorn", "serve") from None
    from whereish.interfaces.service.config import (
        LedgerConfig,
        MechanismConfig,
        checked,
        load_config,
        read_config,
    )
    from whereish.interfaces.service.server import first_token, serve

    if path is not None and (epsilon is not None or cap is not None):
        raise InvalidInput("give either --config, or --mean-error and --cap")
    if path is None and (epsilon is None or cap is None):
        raise InvalidInput(
            "give --config FILE; or, for Laplace noise, --cap and one of --mean-error '300 m',"
            " --within '500 m' and --epsilon 'ln(4)/200 m'"
        )
    if path is not None:
        config = load_config(path)
    else:
        assert epsilon is not None
        assert cap is not None
        config = msgspec.structs.replace(
            read_config(None),
            mechanism=(MechanismConfig("laplace", f"{epsilon.per_m!r}/m"),),
            ledger=LedgerConfig(cap=f"{cap.per_m!r}/m"),
        )
    given = {"host": host, "port": port, "workers": workers, "auth": False if no_auth else None}
    config = checked(
        msgspec.structs.replace(config, **{k: v for k, v in given.items() if v is not None})
    )
    try:
        config.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        raise NotWritten(
            "the folder for the service's state cannot be made: name one that can be written, by"
            ' state = "FOLDER" in the configuration or WHEREISH_SERVE_STATE=FOLDER'
        ) from None
    token = first_token(config)
    if token is not None:
        click.echo(f"first token, shown this once: {token}", err=True)
    serve(config, Path.cwd() if path is None else path.resolve().parent)
