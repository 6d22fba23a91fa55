"""``whereish relay``: private reports instead of places, for OwnTracks."""

from __future__ import annotations

import os

import click

from whereish.errors import MissingExtra
from whereish.interfaces.cli.parameters import BUDGET, DECIMALS, WholeType, level_options
from whereish.units import Epsilon

__all__ = ["command"]


@click.command("relay")
@level_options("of each message", required=True)
@DECIMALS
@click.option("--host", default="127.0.0.1", show_default=True, help="The MQTT broker.")
@click.option("--port", type=WholeType(1, 65_535), default=1883, show_default=True)
@click.option("--source", default="private/owntracks", show_default=True, help="Read SOURCE/+/+.")
@click.option("--target", default="owntracks", show_default=True, help="Publish TARGET/+/+.")
@click.option("--username", help="For the broker; the password is read from MQTT_PASSWORD.")
@click.option("--tls", is_flag=True, help="Encrypt the connection to the broker.")
@click.option("--ledger", help="Charge this ledger, user/device by user/device.")
@click.option("--cap", type=BUDGET, help="The budget of a new ledger, as '10 x 300 m'.")
def command(
    epsilon: Epsilon,
    decimals: int,
    host: str,
    port: int,
    source: str,
    target: str,
    username: str | None,
    tls: bool,
    ledger: str | None,
    cap: Epsilon | None,
) -> None:
    """Relay OwnTracks messages over MQTT, with reports in place of places.

    Phones publish to SOURCE/USER/DEVICE; friends subscribe to TARGET/USER/DEVICE.  Kept are the
    fields tid, tst, batt and conn; acc becomes the radius that holds the report with probability
    0.95, and everything else is dropped, as are messages that are no location or that the budget
    cannot pay.
    """
    try:
        import msgspec  # noqa: F401
    except ImportError:
        raise MissingExtra("msgspec", "relay") from None
    from whereish.interfaces.owntracks.relay import MqttRelay, Sanitizer
    from whereish.interfaces.service.config import MechanismConfig

    said = MechanismConfig("relay", f"{epsilon.per_m!r}/m", decimals)
    sanitizer = Sanitizer.of(said, ledger, None if cap is None else f"{cap.per_m!r}/m")
    password = os.environ.get("MQTT_PASSWORD")
    relay = MqttRelay(
        sanitizer,
        host=host,
        port=port,
        source=source,
        target=target,
        username=username,
        password=password,
        tls=tls,
    )
    click.echo("relaying; end with Ctrl-C", err=True)
    try:
        relay.run()
    finally:
        sanitizer.close()
