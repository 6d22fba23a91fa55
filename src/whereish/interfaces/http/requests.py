"""What a request says of itself: the host it asks for, and its body, bounded."""

from __future__ import annotations

import ipaddress

from starlette.types import Receive

from whereish.interfaces.http.problems import Problem

__all__ = ["gather", "is_loopback", "named_host"]


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def named_host(header: bytes) -> str:
    """The host of a Host header, without its port."""
    text = header.decode("latin-1")
    if text.startswith("["):
        return text[: text.find("]") + 1]
    return text.partition(":")[0]


async def gather(receive: Receive, most: int) -> bytes:
    """The whole body, of at most `most` bytes."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Problem("bad-request", "the request ended early")
        part = message.get("body", b"")
        size += len(part)
        if size > most:
            raise Problem("too-large", f"at most {most} bytes")
        if not message.get("more_body", False):
            return part if not parts else b"".join([*parts, part])
        parts.append(part)
