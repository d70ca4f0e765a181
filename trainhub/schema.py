"""What drf-spectacular cannot see or say by itself: the byte routes in front of Django, every refusal, and
null.

The public functions are postprocessing hooks (SPECTACULAR_SETTINGS). Clients are generated from this
document, so a status or a content type that is missing here is an error that they cannot handle;
tests/api/contract.py compares answers with it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.routing import Route

from jobs.byte_routes import routes as job_bytes
from registry.transfer.routes import routes as model_bytes
from tracking.curves.download import routes as curve_files
from workspaces.http.problems import CONTENT_TYPE

NODE_ROUTES = "/api/v1/node/"
CHANGING_METHODS = ("post", "put", "patch", "delete")
BYTES_TYPE = "application/octet-stream"
JSON_TYPE = "application/json"
CONTENT_TYPES: Mapping[str, str] = {
    "certificate": JSON_TYPE,
    "whole": "application/zip",
    "metrics": "text/csv",
    "run_metrics_csv": "text/csv",
    "verifier": "text/x-python",
    "log": "text/plain",
    "signature": JSON_TYPE,
}
"""Route name -> content type of a success; any other serves a file, whose type follows from its name."""
ANY_TYPE = "*/*"
PARTIAL_FILES = ("file", "whole", "output", "snapshot")
"""Names of the routes that honour Range and conditional requests."""
PROBLEM: dict[str, Any] = {
    "type": "object",
    "description": "RFC 9457 problem details. `errors` names the fields that are wrong.",
    "required": ["type", "title", "status"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What is wrong and what to do, for people."},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["field", "message"],
                "properties": {
                    "field": {
                        "type": "string",
                        "description": "A JSON path such as distribution.process_count.",
                    },
                    "message": {"type": "string"},
                },
            },
        },
    },
}


def add_bytes(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add the byte routes that people's programs use; the nodes' own protocol is not part of the public
    API."""
    for route in (*job_bytes, *model_bytes, *curve_files):
        if not route.path.startswith(NODE_ROUTES):
            operations = result["paths"].setdefault(route.path_format, {})
            for method in sorted(
                (route.methods or set()) - ({"HEAD"} if "GET" in (route.methods or ()) else set())
            ):
                operations[method.lower()] = _operation(route, method)
    result["paths"] = dict(sorted(result["paths"].items()))
    return result


def add_problems(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Declare every refusal of every operation as application/problem+json."""
    result.setdefault("components", {}).setdefault("schemas", {})["Problem"] = PROBLEM
    for path, operations in result["paths"].items():
        for method, operation in operations.items():
            if method in ("get", "head", *CHANGING_METHODS):
                for status in _refusals(path, method, operation):
                    operation["responses"].setdefault(str(status.value), _problem_response(status))
    return result


def null_by_any_of(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Write "this or null" as anyOf: drf-spectacular says oneOf, which null violates where the schema itself
    allows it."""
    _rewrite(result.get("components", {}))
    _rewrite(result["paths"])
    return result


def _rewrite(schema: Any) -> None:
    if isinstance(schema, dict):
        if {"type": "null"} in schema.get("oneOf", ()):
            schema["anyOf"] = schema.pop("oneOf")
        for value in schema.values():
            _rewrite(value)
    elif isinstance(schema, list):
        for value in schema:
            _rewrite(value)


def _refusals(path: str, method: str, operation: Mapping[str, Any]) -> list[HTTPStatus]:
    """The statuses of every refusal that this operation can answer with."""
    statuses = [HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND]
    if method in CHANGING_METHODS:
        statuses += [HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS]
    if "requestBody" in operation or method in ("post", "put", "patch"):
        statuses += [HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE]
    if path.endswith(("/uploads/{sha256}", "/versions/upload", "/snapshots/")) and method in ("post", "put"):
        statuses.append(HTTPStatus.INSUFFICIENT_STORAGE)
    if method == "get" and not path.endswith("/"):
        statuses += [HTTPStatus.PRECONDITION_FAILED, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE]
    return [*statuses, HTTPStatus.NOT_ACCEPTABLE, HTTPStatus.INTERNAL_SERVER_ERROR]


def _problem_response(status: HTTPStatus) -> dict[str, Any]:
    content = {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {"description": status.phrase, "content": content}


def _operation(route: Route, method: str) -> dict[str, Any]:
    told = (inspect.getdoc(route.endpoint) or "").removeprefix(f"{method}: ")
    names = re.findall(r"{(\w+)}", route.path_format)
    return {
        "operationId": f"{route.name}_{method.lower()}",
        "description": told[:1].upper() + told[1:],
        "parameters": [
            {"in": "path", "name": name, "required": True, "schema": {"type": "string"}} for name in names
        ],
        "tags": [route.path.split("/")[3]],
        "security": [{"token": []}],
        "responses": _successes(route.name, method),
    }


def _successes(name: str, method: str) -> dict[str, Any]:
    if method == "HEAD":
        return {"200": {"description": "As GET, without the bytes."}}
    if method == "PUT":
        return {"200": {"description": "The piece is stored; Upload-Complete tells whether it was the last."}}
    if method == "POST":
        return {"201": {"description": "Made.", "content": {JSON_TYPE: {"schema": {"type": "object"}}}}}
    content_type = CONTENT_TYPES.get(name, ANY_TYPE)
    schema = {"type": "object"} if content_type == JSON_TYPE else {"type": "string", "format": "binary"}
    content = {content_type: {"schema": schema}}
    answers: dict[str, Any] = {"200": {"description": "The whole.", "content": content}}
    if name in PARTIAL_FILES:
        answers["206"] = {
            "description": "The range that was asked for.",
            "content": {ANY_TYPE: {"schema": schema}},
        }
        answers["304"] = {"description": "Not changed since the ETag or date that was sent."}
    return answers
