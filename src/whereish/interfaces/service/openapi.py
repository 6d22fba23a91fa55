"""The OpenAPI document and its page, both made from the routes' own types."""

from __future__ import annotations

import html
from typing import Any, Final, NamedTuple

import msgspec

import whereish
from whereish.interfaces.http.problems import KINDS, ProblemDetails
from whereish.interfaces.service import messages
from whereish.interfaces.service.config import NAME

__all__ = ["document", "page"]


class _Operation(NamedTuple):
    """One method of one path."""

    method: str
    path: str
    summary: str
    answer: type | None
    takes: tuple[type, ...] = ()
    status: int = 200
    problems: tuple[int, ...] = ()
    repeatable: bool = False


_GUARD: Final = (400, 401, 429)
_BODY: Final = (408, 413, 415, 422)


def _charged(
    path: str,
    summary: str,
    answer: type | None,
    *takes: type,
    status: int = 200,
    repeatable: bool = False,
    upstream: bool = False,
) -> _Operation:
    """A POST that is charged to a subject, and may ask another server."""
    problems = (*_BODY, 403, 404, 409, *((502,) if upstream else ()), 503)
    return _Operation("post", path, summary, answer, takes, status, problems, repeatable)


_OPERATIONS: Final = (
    _charged(
        "/v1/report",
        "Report one place, or several, privately",
        None,
        messages.One,
        messages.Batch,
        repeatable=True,
    ),
    _charged(
        "/v1/nearby",
        "What is near a place, from a source that is told a report of it only",
        messages.AroundAnswer,
        messages.Around,
        repeatable=True,
        upstream=True,
    ),
    _charged(
        "/v1/owntracks",
        "Pass an OwnTracks location on as a report; other messages are dropped",
        list,
        dict,
        upstream=True,
    ),
    _charged(
        "/v1/traces",
        "Begin a trace session; its total is charged now",
        messages.SessionAnswer,
        messages.Session,
        status=201,
        repeatable=True,
    ),
    _charged(
        "/v1/traces/{session}/steps",
        "Report the next place of a session",
        messages.StepAnswer,
        messages.Step,
    ),
    _Operation(
        "delete",
        "/v1/traces/{session}",
        "Close a session",
        messages.Closed,
        problems=(403, 404, 503),
    ),
    _Operation("get", "/v1/mechanisms", "What the token may use", messages.Mechanisms),
    _Operation(
        "get",
        "/v1/mechanisms/{id}",
        "One mechanism",
        messages.Mechanism,
        problems=(403, 404),
    ),
    _Operation(
        "get",
        "/v1/mechanisms/{id}/certificate",
        "Its guarantee in full",
        messages.Certificate,
        problems=(403, 404),
    ),
    _Operation(
        "get",
        "/v1/budget/{subject}",
        "What a subject has spent and has left",
        messages.BudgetAnswer,
        problems=(403, 404, 503),
    ),
    _Operation("get", "/readyz", "Ready to answer", messages.Health, (), 200, (503,)),
    _Operation("get", "/metrics", "Counts and times for Prometheus", str, (), 200, (403,)),
    _Operation("get", "/healthz", "The process answers", messages.Health),
)
_PARAMETERS: Final = {
    "session": "^[0-9a-f]{32}$",
    "id": NAME,
    "subject": NAME,
}


def document() -> dict[str, Any]:
    """The OpenAPI 3.1 document."""
    types = [
        messages.OneAnswer,
        messages.BatchAnswer,
        ProblemDetails,
        *(kind for operation in _OPERATIONS for kind in operation.takes if kind is not dict),
        *(o.answer for o in _OPERATIONS if o.answer not in (None, str, list)),
    ]
    unique = list(dict.fromkeys(types))
    _, components = msgspec.json.schema_components(
        unique, ref_template="#/components/schemas/{name}"
    )
    paths: dict[str, dict[str, Any]] = {}
    for operation in _OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "whereish",
            "version": whereish.__version__,
            "description": "Say roughly where someone is, with a proof of how roughly.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _described(operation: _Operation) -> dict[str, Any]:
    said: dict[str, Any] = {
        "summary": operation.summary,
        "responses": {str(operation.status): _answer(operation)},
    }
    open_route = operation.path == "/healthz"
    if open_route:
        said["security"] = []
    for status in sorted({*operation.problems, *(() if open_route else _GUARD), 500}):
        said["responses"][str(status)] = _problem(status)
    names = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
    parameters: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "pattern": _PARAMETERS[name]},
        }
        for name in names
    ]
    if operation.repeatable:
        parameters.append(
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": False,
                "description": "The same key gives the same answer, charged once.",
                "schema": {"type": "string", "pattern": "^[!-~]{1,200}$"},
            }
        )
    if parameters:
        said["parameters"] = parameters
    if operation.takes:
        said["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": _either(operation.takes)}},
        }
    return said


def _answer(operation: _Operation) -> dict[str, Any]:
    if operation.answer is str:
        content: dict[str, Any] = {"text/plain": {"schema": {"type": "string"}}}
    else:
        kinds = (
            (messages.OneAnswer, messages.BatchAnswer)
            if operation.answer is None
            else (operation.answer,)
        )
        content = {"application/json": {"schema": _either(kinds)}}
    return {"description": operation.summary, "content": content}


def _problem(status: int) -> dict[str, Any]:
    titles = "; ".join(title for code, title in KINDS.values() if code == status)
    schema = {"$ref": "#/components/schemas/ProblemDetails"}
    said: dict[str, Any] = {
        "description": titles,
        "content": {"application/problem+json": {"schema": schema}},
    }
    if status == 429:
        said["headers"] = {"Retry-After": {"schema": {"type": "integer", "minimum": 1}}}
    return said


def _either(kinds: tuple[type, ...]) -> dict[str, Any]:
    if kinds[0] in (dict, list):
        return {"type": "object"} if kinds[0] is dict else {"type": "array", "maxItems": 0}
    refs = [{"$ref": f"#/components/schemas/{kind.__name__}"} for kind in kinds]
    return refs[0] if len(refs) == 1 else {"oneOf": refs}


def page(said: dict[str, Any]) -> bytes:
    """The document as one page without scripts, styles or anything from elsewhere."""
    rows = []
    for path, methods in said["paths"].items():
        for method, operation in methods.items():
            statuses = ", ".join(operation["responses"])
            rows.append(
                f"<tr><td><code>{method.upper()} {html.escape(path)}</code></td>"
                f"<td>{html.escape(operation['summary'])}</td><td>{statuses}</td></tr>"
            )
    schemas = "".join(
        f"<h3>{html.escape(name)}</h3><pre>{html.escape(_pretty(schema))}</pre>"
        for name, schema in said["components"]["schemas"].items()
    )
    text = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>whereish</title></head>'
        f"<body><h1>whereish {html.escape(said['info']['version'])}</h1>"
        "<p>Every route but /healthz needs <code>Authorization: Bearer TOKEN</code>. The document"
        " for programs is <a href='/openapi.json'>/openapi.json</a>.</p>"
        f"<table><tr><th>Route</th><th>What it does</th><th>Statuses</th></tr>{''.join(rows)}"
        f"</table><h2>Messages</h2>{schemas}</body></html>"
    )
    return text.encode()


def _pretty(schema: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(schema), indent=2).decode()
