"""What the service is told: one TOML file, and environment variables that override it.

``WHEREISH_SERVE_PORT=8000`` sets ``port``, ``WHEREISH_SERVE_LEDGER__CAP`` sets ``cap`` in
``[ledger]``.  Unknown names are refused, in the file and in the environment.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

import msgspec

from whereish.errors import InvalidInput
from whereish.interfaces.http.requests import is_loopback
from whereish.interfaces.service.places import SourceConfig

__all__ = [
    "NAME",
    "Config",
    "LedgerConfig",
    "Limits",
    "MechanismConfig",
    "TraceConfig",
    "checked",
    "load_config",
    "read_config",
]

PREFIX: Final = "WHEREISH_SERVE_"
NAME: Final = r"^[A-Za-z0-9._:@-]{1,128}$"
"""Names of mechanisms and subjects: no name needs quoting in a path, a log or SQL."""

Name = Annotated[str, msgspec.Meta(pattern=NAME)]
Positive = Annotated[int, msgspec.Meta(ge=1)]


class LedgerConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where charges are kept, and the cap of a new ledger."""

    address: str = ""
    cap: str | None = None
    window_s: Annotated[float, msgspec.Meta(gt=0)] | None = None


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one request, one token and one worker may ask for."""

    body_bytes: Positive = 65_536
    batch: Positive = 1_000
    rate_per_s: Annotated[float, msgspec.Meta(gt=0)] = 100.0
    burst: Positive = 200
    concurrency: Positive = 256
    body_timeout_s: Annotated[float, msgspec.Meta(gt=0)] = 15.0
    idempotency_hours: Annotated[float, msgspec.Meta(gt=0)] = 24.0


class MechanismConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mechanism that is offered: Laplace noise on the globe, or a saved file.

    How much noise is said by `epsilon`, or in metres: by `mean_error`, or by `within`, a radius
    that holds a report with probability `confidence` (0.95).
    """

    id: Name
    epsilon: str | None = None
    decimals: Annotated[int, msgspec.Meta(ge=0, le=9)] = 5
    file: str | None = None
    mean_error: str | None = None
    within: str | None = None
    confidence: Annotated[float, msgspec.Meta(gt=0, lt=1)] | None = None


class TraceConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of trace session: the predictive mechanism with a total that every run keeps."""

    id: Name
    accuracy: str
    total: str
    top_speed: float | None = None


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of it."""

    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65_535)] = 8790
    workers: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    state: str = ""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    auth: bool = True
    uncharged: bool = False
    pad_ms: Annotated[float, msgspec.Meta(gt=0)] = 10.0
    tls_certificate: str | None = None
    tls_key: str | None = None
    places: str | None = None
    source: SourceConfig | None = None
    owntracks: str | None = None
    ledger: LedgerConfig | None = None
    limits: Limits = Limits()
    mechanism: tuple[MechanismConfig, ...] = ()
    trace: tuple[TraceConfig, ...] = ()

    @property
    def folder(self) -> Path:
        """Where the service keeps its tokens, its key and, by default, its ledger."""
        if self.state:
            return Path(self.state)
        home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        return Path(home) / "whereish"

    @property
    def ledger_address(self) -> str:
        """The ledger's address; one in the state folder where none is named."""
        named = self.ledger.address if self.ledger is not None else ""
        return named or str(self.folder / "ledger.db")


def load_config(
    path: str | Path | None = None, environment: Mapping[str, str] | None = None
) -> Config:
    """The configuration of a file, the environment on top; safe and complete.

    Raises
    ------
    InvalidInput
        As :func:`read_config`, or if a combination is unsafe.
    """
    return checked(read_config(path, environment))


def read_config(path: str | Path | None, environment: Mapping[str, str] | None = None) -> Config:
    """The configuration of a file (none: all defaults), the environment on top.

    Raises
    ------
    InvalidInput
        If a name is unknown, or a value has the wrong type.
    """
    said: dict[str, Any] = {}
    if path is not None:
        try:
            said = tomllib.loads(Path(path).read_text("utf-8"))
        except OSError as error:
            raise InvalidInput(f"the configuration cannot be read ({error.strerror})") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidInput(f"the configuration is not TOML ({error})") from None
    _overlay(said, os.environ if environment is None else environment)
    try:
        return msgspec.convert(said, Config, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"the configuration cannot be used: {error}") from None


def checked(config: Config) -> Config:
    """The configuration, if it is safe and complete."""
    if not config.auth and not is_loopback(config.host):
        raise InvalidInput(
            "a service without tokens may listen on loopback only, such as 127.0.0.1: it would"
            " answer everybody"
        )
    if (config.ledger is None) != config.uncharged:
        raise InvalidInput(
            "give the service a [ledger] with a cap, or say uncharged = true: reports of one person"
            " add up, and nobody would count them"
        )
    if (config.tls_certificate is None) != (config.tls_key is None):
        raise InvalidInput("tls_certificate and tls_key must be given together")
    if config.places is not None and config.source is not None:
        raise InvalidInput("give either places, a store, or [source]")
    if config.owntracks is not None and not _may_forward(config.owntracks):
        raise InvalidInput("owntracks must be https://..., or http:// on this machine")
    if config.trace and config.ledger is None:
        raise InvalidInput("traces need a [ledger]: their total is charged before the first step")
    names = [one.id for one in config.mechanism] + [one.id for one in config.trace]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidInput(f"ids must differ; got {', '.join(twice)} twice")
    for item in config.mechanism:
        ways = (item.epsilon, item.mean_error, item.within, item.file)
        if sum(way is not None for way in ways) != 1:
            raise InvalidInput(
                f"mechanism {item.id} must have one of epsilon, mean_error, within and file, as"
                " mean_error = '300 m'"
            )
        if item.confidence is not None and item.within is None:
            raise InvalidInput(
                f"mechanism {item.id}: confidence goes with within, as within = '500 m' and"
                " confidence = 0.9"
            )
    if not config.mechanism:
        raise InvalidInput(
            "the configuration must offer at least one mechanism: [[mechanism]] with an id and"
            " mean_error = '300 m', within = '500 m', epsilon = 'ln(4)/200 m' or a file"
        )
    return config


def _may_forward(url: str) -> bool:
    parts = urlsplit(url)
    return bool(parts.hostname) and (
        parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    )


def _overlay(said: dict[str, Any], environment: Mapping[str, str]) -> None:
    for variable, value in environment.items():
        if not variable.startswith(PREFIX):
            continue
        *tables, field = variable.removeprefix(PREFIX).lower().split("__")
        place = said
        for table in tables:
            place = place.setdefault(table, {})
            if not isinstance(place, dict):
                raise InvalidInput(f"{variable} names a table that is none in the configuration")
        place[field] = value
