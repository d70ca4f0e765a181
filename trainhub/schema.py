"""Completes the OpenAPI document with what drf-spectacular cannot find by itself: byte routes in front of
Django, all refusals, and null.

The public functions are postprocessing hooks (SPECTACULAR_SETTINGS). Clients are generated from this
document, so they cannot handle a status or a content type that is missing here; tests/api/contract.py
compares answers with it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.routing import Route

from jobs.byte_routes import routes as job_bytes
from jobs.transfer.downloads import DEFAULT_RANGE_BYTES, MAX_RANGE_BYTES
from jobs.transfer.log_waits import MAX_WAIT_S
from registry.transfer.routes import routes as model_bytes
from tracking.curves.download import routes as curve_files
from workspaces.http.problems import CONTENT_TYPE

NODE_ROUTES = ("/api/v1/node/", "/v2/")
CHANGING_METHODS = ("post", "put", "patch", "delete")
BYTES_TYPE = "application/octet-stream"
JSON_TYPE = "application/json"
# Route name -> content type of a success; any other serves a file, whose type follows from its name.
CONTENT_TYPES: Mapping[str, str] = {
    "certificate": JSON_TYPE,
    "whole": "application/zip",
    "metrics": "text/csv",
    "run_metrics_csv": "text/csv",
    "verifier": "text/x-python",
    "log": "text/plain",
    "signature": JSON_TYPE,
}
_ATTEMPT = ("attempt", {"type": "integer", "minimum": 0}, "The number of an attempt; by default the latest.")
_LOG_RANGE = (
    ("offset", {"type": "integer", "minimum": 0, "default": 0}, "The first byte."),
    (
        "limit",
        {"type": "integer", "minimum": 0, "default": DEFAULT_RANGE_BYTES},
        f"The greatest number of bytes of the answer; never more than {MAX_RANGE_BYTES:,}.",
    ),
    (
        "wait_s",
        {"type": "number", "minimum": 0, "maximum": MAX_WAIT_S, "default": 0},
        "How many seconds the answer may wait if there are no bytes at `offset` and the log is not complete. "
        "It comes as soon as there are bytes, the log is complete, or the run has another attempt, also "
        "without bytes; and at once if too many requests wait already.",
    ),
    ("download", {"type": "integer", "enum": [0, 1]}, "1: the whole log as a file, at once."),
)
# Route name -> name, schema and description of each query parameter.
QUERY_PARAMETERS: Mapping[str, tuple[tuple[str, Mapping[str, object], str], ...]] = {
    "log": (_ATTEMPT, *_LOG_RANGE),
    "build_log": _LOG_RANGE,
    "data_order_log": _LOG_RANGE,
}
_LOG_HEADERS: dict[str, object] = {
    "X-Log-Size": {"schema": {"type": "integer"}, "description": "How many bytes the hub has of the log."},
    "X-Log-Complete": {
        "schema": {"type": "string", "enum": ["true", "false"]},
        "description": "Whether the hub has every byte that the log will ever have.",
    },
    "X-Log-Attempt": {"schema": {"type": "integer"}, "description": "The attempt whose log this is."},
}
ANY_TYPE = "*/*"
# Names of the routes that honour Range and conditional requests.
PARTIAL_FILES = ("file", "whole", "output", "snapshot")
PROBLEM: dict[str, object] = {
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


def add_bytes(result: dict[str, Any], **_: object) -> dict[str, Any]:
    """Adds the byte routes for programs of people. The protocol of the nodes is not part of the public
    API."""
    for route in (*job_bytes, *model_bytes, *curve_files):
        if not route.path.startswith(NODE_ROUTES):
            operations = result["paths"].setdefault(route.path_format, {})
            # Starlette adds HEAD to every GET route by itself.
            for method in sorted(
                (route.methods or set()) - ({"HEAD"} if "GET" in (route.methods or ()) else set())
            ):
                operations[method.lower()] = _operation(route, method)
    result["paths"] = dict(sorted(result["paths"].items()))
    return result


def add_problems(result: dict[str, Any], **_: object) -> dict[str, Any]:
    """Declares every refusal of every operation as application/problem+json."""
    result.setdefault("components", {}).setdefault("schemas", {})["Problem"] = PROBLEM
    for path, operations in result["paths"].items():
        for method, operation in operations.items():
            if method in ("get", "head", *CHANGING_METHODS):
                for status in _refusals(path, method, operation):
                    operation["responses"].setdefault(str(status.value), _problem_response(status))
    return result


def null_by_any_of(result: dict[str, object], **_: object) -> dict[str, Any]:
    """Writes "this or null" as anyOf. drf-spectacular writes oneOf, which null violates if the schema itself
    permits null."""
    _rewrite(result.get("components", {}))
    _rewrite(result["paths"])
    return result


def _rewrite(schema: object) -> None:
    if isinstance(schema, dict):
        if {"type": "null"} in schema.get("oneOf", ()):
            schema["anyOf"] = schema.pop("oneOf")
        for value in schema.values():
            _rewrite(value)
    elif isinstance(schema, list):
        for value in schema:
            _rewrite(value)


def _refusals(path: str, method: str, operation: Mapping[str, object]) -> list[HTTPStatus]:
    """Returns the statuses of every refusal with which this operation can answer."""
    statuses = [HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND]
    if method in CHANGING_METHODS:
        statuses += [HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS]
    if "requestBody" in operation or method in ("post", "put", "patch"):
        statuses += [HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE]
    if path.endswith(("/uploads/{sha256}", "/versions/upload", "/snapshots/")) and method in ("post", "put"):
        statuses.append(HTTPStatus.INSUFFICIENT_STORAGE)
    if path.endswith("/secrets/{name}/") and method == "put":
        # Without the keys no value can be stored.
        statuses.append(HTTPStatus.SERVICE_UNAVAILABLE)
    if method == "get" and not path.endswith("/"):
        statuses += [HTTPStatus.PRECONDITION_FAILED, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE]
    return [*statuses, HTTPStatus.NOT_ACCEPTABLE, HTTPStatus.INTERNAL_SERVER_ERROR]


def _problem_response(status: HTTPStatus) -> dict[str, Any]:
    content = {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {"description": status.phrase, "content": content}


def _operation(route: Route, method: str) -> dict[str, Any]:
    description = (inspect.getdoc(route.endpoint) or "").removeprefix(f"{method}: ")
    names = re.findall(r"{(\w+)}", route.path_format)
    return {
        "operationId": f"{route.name}_{method.lower()}",
        "description": description[:1].upper() + description[1:],
        "parameters": [
            *({"in": "path", "name": name, "required": True, "schema": {"type": "string"}} for name in names),
            *(
                {"in": "query", "name": name, "schema": schema, "description": text}
                for name, schema, text in QUERY_PARAMETERS.get(route.name, ())
            ),
        ],
        "tags": [route.path.split("/")[3]],
        "security": [{"token": []}],
        "responses": _successes(route.name, method),
    }


def _successes(name: str, method: str) -> dict[str, Any]:
    if method == "HEAD":
        return {"200": {"description": "The headers of the response, without content."}}
    if method == "PUT":
        return {
            "200": {
                "description": (
                    "The piece is stored. The header Upload-Complete tells whether it was the last one."
                )
            }
        }
    if method == "POST":
        return {"201": {"description": "Created.", "content": {JSON_TYPE: {"schema": {"type": "object"}}}}}
    content_type = CONTENT_TYPES.get(name, ANY_TYPE)
    schema = {"type": "object"} if content_type == JSON_TYPE else {"type": "string", "format": "binary"}
    content = {content_type: {"schema": schema}}
    answers: dict[str, object] = {"200": {"description": "The complete content.", "content": content}}
    if name in QUERY_PARAMETERS:
        answers["200"] = {"description": "The requested bytes.", "content": content, "headers": _LOG_HEADERS}
    if name in PARTIAL_FILES:
        answers["206"] = {
            "description": "The requested range.",
            "content": {ANY_TYPE: {"schema": schema}},
        }
        answers["304"] = {"description": "The content has not changed since the ETag or date in the request."}
    return answers
