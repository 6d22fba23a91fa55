"""The HTTP service: reports, traces and budgets over one small interface.

Starlette routes, msgspec messages, pure-ASGI layers; see docs/service.md.
"""
