"""The client of the HTTP service, for threads and for tasks (the `client` extra)."""

from __future__ import annotations

from whereish.interfaces.client.client import AsyncClient, Client
from whereish.interfaces.client.trace import AsyncTrace, Trace

__all__ = ["AsyncClient", "AsyncTrace", "Client", "Trace"]
