"""``whereish audit``: verify a saved mechanism from its numbers."""

from __future__ import annotations

import json
from pathlib import Path

import click

from whereish.interfaces.cli.parameters import describe
from whereish.privacy.metric import Scaled

__all__ = ["command"]


@click.command("audit")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(file: Path, as_json: bool) -> None:
    """Verify the promise of a mechanism saved in FILE, from the numbers alone.

    The certificate's hash, the row sums and all triples (secret, secret, report) are
    checked.  A mechanism that does not keep its promise is an error.
    """
    from whereish.mechanisms.artefact import load_artefact
    from whereish.mechanisms.channel import Channel

    channel = Channel.load(file)
    found = channel.verify()
    artefact = load_artefact(file)
    if as_json:
        payload = {
            "kind": artefact.kind,
            "secrets": len(channel.secrets),
            "reports": len(channel.reports),
            "factor": found.upper,
            "worst": found.triple,
            "sha256": artefact.certificate["sha256"],
            "guarantee": artefact.certificate["guarantee"],
            "details": channel.details,
        }
        click.echo(json.dumps(payload, indent=2))
        return
    click.echo(
        f"kept: {len(channel.secrets)} secrets, {len(channel.reports)} reports, at most"
        f" {found.upper:.12g} of the promised metric"
    )
    if found.triple is not None:
        x, y, z = found.triple
        click.echo(f"worst: secrets {x} and {y}, report {z}")
    click.echo(f"sha256 {artefact.certificate['sha256']}")
    known = isinstance(channel.guarantee.metric, Scaled)
    text = describe(channel.guarantee) if known else f"guarantee: {channel.guarantee}"
    click.echo(text, err=True)
