"""``whereish audit``: verify a saved mechanism from its numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whereish.errors import InvalidInput
from whereish.interfaces.cli.parameters import describe
from whereish.privacy.metric import Scaled

if TYPE_CHECKING:
    from whereish.mechanisms.saved import Artefact

__all__ = ["command"]


@click.command("audit")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(file: Path, as_json: bool) -> None:
    """Verify the promise of a mechanism saved in FILE, from the numbers alone.

    The certificate's hash, the row sums and all triples (secret, secret, report) are
    checked.  A mechanism that does not keep its promise is an error.  The guarantee is
    worded from what was found; only what stands under "claimed" is the file's own word.
    """
    from whereish.mechanisms.channels.channel import CHANNEL, verified_channel
    from whereish.mechanisms.saved import load_artefact

    artefact = load_artefact(file)
    if artefact.kind != CHANNEL:
        _audit_under_map(artefact, as_json)
        return
    channel, found = verified_channel(artefact)
    if as_json:
        payload = {
            "kind": artefact.kind,
            "secrets": len(channel.secrets),
            "reports": len(channel.reports),
            "factor": found.upper,
            "worst": found.triple,
            "sha256": artefact.certificate["sha256"],
            "guarantee": channel.guarantee.to_json(),
            "claimed": channel.details,
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


def _audit_under_map(artefact: Artefact, as_json: bool) -> None:
    """All sums, edges and reports of a mechanism under a privacy map, again from the numbers."""
    from whereish.mechanisms.maps.eikonal import EikonalMechanism
    from whereish.mechanisms.maps.query import EikonalQuery
    from whereish.mechanisms.saved import mechanism_in

    # Reading certifies anew, and refuses what the numbers do not bear out.
    mechanism = mechanism_in(artefact)
    if not isinstance(mechanism, EikonalMechanism | EikonalQuery):
        raise InvalidInput(
            f"the audit knows no mechanism of kind {artefact.kind!r}; reading it with whereish.load"
            " verifies it"
        )
    law = mechanism.built.in_use if isinstance(mechanism, EikonalMechanism) else mechanism.law
    factor = mechanism.factor
    if as_json:
        payload = {
            "kind": artefact.kind,
            "secrets": len(mechanism.map.raster),
            "reports": int((law.weights > 0).sum()),
            "factor": factor,
            "worst": list(law.worst),
            "sha256": artefact.certificate["sha256"],
            "guarantee": mechanism.guarantee.to_json(),
        }
        click.echo(json.dumps(payload, indent=2))
        return
    rows, cols = mechanism.map.shape
    click.echo(f"kept: {rows} x {cols} cells, at most {factor:.12g} of the promised metric")
    click.echo(f"sha256 {artefact.certificate['sha256']}")
    click.echo(f"guarantee: {mechanism.guarantee}", err=True)
