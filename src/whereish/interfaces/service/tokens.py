"""Bearer tokens: random secrets with scopes, of which only hashes are kept.

A token is ``wh_ID_SECRET`` with 256 random bits, so that one round of SHA-256 protects it at
rest.  The id finds its line, the hash of the secret is compared in constant time; an unknown id
is compared too, with a hash that nothing has.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import tempfile
import time
from pathlib import Path
from typing import Annotated, Final

import msgspec

from whereish.errors import InvalidInput
from whereish.interfaces.service.config import NAME

__all__ = ["SCOPES", "Token", "TokenFile", "secret_key"]

SCOPES: Final = ("budget", "metrics", "nearby", "report", "traces")
"""What a token may allow; "report:ID" and "traces:ID" allow one mechanism only."""

_NOBODY: Final = hashlib.sha256(b"no token has this hash").hexdigest()
_LOOK_S: Final = 1.0


class Token(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of the file: who, what for, and the hash of the secret."""

    id: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{8}$")]
    name: Annotated[str, msgspec.Meta(pattern=NAME)]
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    scopes: tuple[str, ...]
    subject: Annotated[str, msgspec.Meta(pattern=NAME)] | None = None

    def allows(self, scope: str, item: str | None = None) -> bool:
        """Whether it may do this: for everything, or for one mechanism."""
        return scope in self.scopes or (item is not None and f"{scope}:{item}" in self.scopes)


EVERYBODY: Final = Token("00000000", "nobody", _NOBODY, SCOPES)
"""Who asks a service on loopback that was started without tokens."""


class TokenFile:
    """The tokens of a service; the file is read again when it changes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._tokens: dict[str, Token] = {}
        self._stamp: tuple[int, int] | None = None
        self._looked = float("-inf")

    def add(
        self, name: str, scopes: tuple[str, ...] = SCOPES, *, subject: str | None = None
    ) -> str:
        """A new token, which is shown this once.

        Raises
        ------
        InvalidInput
            If the name is taken, or a scope unknown.
        """
        for scope in scopes:
            kind, _, item = scope.partition(":")
            if kind not in SCOPES or (item and kind not in ("report", "traces")):
                raise InvalidInput(
                    f"scopes must be of {', '.join(SCOPES)}, or report:ID, traces:ID"
                )
        known = self.all()
        if any(token.name == name for token in known):
            raise InvalidInput(f"there is a token named {name} already: remove it first")
        secret = secrets.token_urlsafe(32)
        token = Token(secrets.token_hex(4), name, _digest(secret), tuple(scopes), subject)
        self._write([*known, token])
        return f"wh_{token.id}_{secret}"

    def remove(self, name: str) -> None:
        """Take a token away; services that run notice within a second."""
        known = self.all()
        left = [token for token in known if token.name != name]
        if len(left) == len(known):
            raise InvalidInput(f"there is no token named {name}")
        self._write(left)

    def all(self) -> list[Token]:
        """Every token of the file."""
        try:
            return list(msgspec.json.decode(self.path.read_bytes(), type=list[Token]))
        except FileNotFoundError:
            return []
        except (OSError, msgspec.MsgspecError):
            raise InvalidInput(f"{self.path.name} is not a file of tokens") from None

    def find(self, given: bytes) -> Token | None:
        """The token that a request carries; None if it is none of ours."""
        self._renew()
        text = given.decode("latin-1")
        head, _, secret = text[3:].partition("_")
        token = self._tokens.get(head) if text.startswith("wh_") else None
        expected = token.sha256 if token is not None else _NOBODY
        same = hmac.compare_digest(_digest(secret), expected)
        return token if same and token is not None else None

    def _renew(self) -> None:
        now = time.monotonic()
        if now - self._looked < _LOOK_S:
            return
        self._looked = now
        try:
            status = self.path.stat()
            stamp = (status.st_mtime_ns, status.st_ino)
        except OSError:
            self._tokens, self._stamp = {}, None
            return
        if stamp != self._stamp:
            self._tokens = {token.id: token for token in self.all()}
            self._stamp = stamp

    def _write(self, tokens: list[Token]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        written = msgspec.json.format(msgspec.json.encode(tokens))
        descriptor, fresh = tempfile.mkstemp(prefix=".tokens.", dir=self.path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(written)
                file.flush()
                os.fsync(file.fileno())
            Path(fresh).replace(self.path)
        except OSError:
            Path(fresh).unlink(missing_ok=True)
            raise


def secret_key(folder: Path) -> bytes:
    """The key of keyed hashes, made at the first start and kept outside the ledger."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / "hash.key"
    fresh = folder / f".hash.key.{secrets.token_hex(4)}"
    if not path.exists():
        fresh.touch(0o600)
        fresh.write_bytes(secrets.token_bytes(32))
        try:
            os.link(fresh, path)  # another worker may be faster
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
    key = path.read_bytes()
    if len(key) != 32:
        raise InvalidInput(f"{path.name} must hold 32 bytes; it was changed or damaged")
    return key


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("latin-1", "replace")).hexdigest()
