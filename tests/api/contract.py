"""Holds every answer of the API to the OpenAPI document: status, content type and shape must be declared
there."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any

from django.http.response import HttpResponseBase
from django.test import Client
from drf_spectacular.generators import SchemaGenerator

ROOT = "/api/v1/"
NOT_PART = (f"{ROOT}schema/", f"{ROOT}probe/")
"""The document itself, and what tests add."""
UNDECLARED_STATUSES = (301, 405)
"""A missing slash, and a method that a path does not have: no operation of the document could declare
these."""
GREEDY_PARAMETERS = ("/tags/{key}", "/logs/{name}", "{path}")


class ApiClient(Client):
    """Django's test client; each answer below /api/v1/ is checked against the document."""

    def request(self, **request: Any) -> Any:
        response = super().request(**request)
        check(response.wsgi_request.method or "", response.wsgi_request.path, response)
        return response


def check(method: str, path: str, response: HttpResponseBase) -> None:
    """Fail where the document does not declare this answer."""
    if not path.startswith(ROOT) or path.startswith(NOT_PART) or method == "OPTIONS":
        return
    if response.status_code in UNDECLARED_STATUSES:
        return
    content_type = response.headers.get("Content-Type", "").partition(";")[0]
    is_json = content_type.endswith("json") and not response.streaming
    body = response.json() if is_json else None  # type: ignore[attr-defined]
    compare(method, path, response.status_code, content_type, body)


def compare(method: str, path: str, status: int, content_type: str, body: Any) -> None:
    """As `check`, for any kind of client. `body`: the decoded JSON, None where the answer is not JSON."""
    operation = _operation(method, path)
    if operation is None:
        assert status == 404, f"{method} {path} answers {status} and is not in the OpenAPI document"
        return
    name, declared = operation
    answer = declared["responses"].get(str(status))
    assert answer is not None, f"{name} answers {status}, which its OpenAPI document does not declare"
    content = answer.get("content", {})
    if not content:
        return
    assert content_type in content or "*/*" in content, (
        f"{name} answers {status} as {content_type}, declared: {list(content)}"
    )
    if body is not None and content_type in content:
        errors = _validator(name, str(status), content_type).iter_errors(body)
        problems = [f"{error.json_path}: {error.message}" for error in errors]
        assert not problems, f"{name} answers {status} in another shape than declared: {problems[:5]}"


@functools.cache
def document() -> dict[str, Any]:
    generator: Any = SchemaGenerator
    schema: dict[str, Any] = generator().get_schema(request=None, public=True)
    return schema


@functools.cache
def _patterns() -> list[tuple[re.Pattern[str], str]]:
    """Every path of the document as an expression; those with fewer parameters first, so that literal parts
    win."""
    paths = sorted(document()["paths"], key=lambda path: (path.count("{"), path))
    return [(re.compile("".join(_expression(path))), path) for path in paths]


def _expression(path: str) -> Iterator[str]:
    for part in re.split(r"({\w+})", path):
        if part.startswith("{"):
            yield ".+" if any(part in greedy and greedy in path for greedy in GREEDY_PARAMETERS) else "[^/]+"
        else:
            yield re.escape(part)


def _operation(method: str, path: str) -> tuple[str, Mapping[str, Any]] | None:
    method = "GET" if method == "HEAD" and not path.startswith(f"{ROOT}uploads/") else method
    for pattern, template in _patterns():
        if pattern.fullmatch(path):
            found = document()["paths"][template].get(method.lower())
            if found is not None:
                return f"{method} {template}", found
    return None


@functools.cache
def _validator(name: str, status: str, content_type: str) -> Any:
    method, _, template = name.partition(" ")
    answer = document()["paths"][template][method.lower()]["responses"][status]
    schema = answer["content"][content_type]["schema"]
    # A library of it builds its grammars for seconds: only processes that check answers pay for it.
    from openapi_schema_validator import OAS31Validator

    return OAS31Validator({"allOf": [schema], "components": document()["components"]})
