"""Writes every refusal of the API as RFC 9457 problem details that name the wrong fields."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied, RequestDataTooBig, TooManyFilesSent
from django.http import Http404, JsonResponse
from rest_framework import exceptions
from rest_framework.views import set_rollback

from trainhub_launch.errors import SpecError
from workspaces.database.outages import outage_of
from workspaces.http.outage_answers import REST, RETRY_AFTER_S
from workspaces.http.problems import CONTENT_TYPE, problem_body
from workspaces.object_store.errors import StoreUnavailable

logger = logging.getLogger(__name__)


class ApiProblem(Exception):
    """Raised by API views to refuse a request. `errors`: (field, message) pairs; the title is a sentence with
    the remedy."""

    def __init__(self, status: int, title: str, errors: Iterable[tuple[str, str]] = ()) -> None:
        super().__init__(title)
        self.status = status
        self.title = title
        self.errors = tuple(errors)


def problem(
    status: int, title: str, errors: Iterable[tuple[str, str]] = (), headers: Mapping[str, str] | None = None
) -> JsonResponse:
    """Returns the response of a refusal. `errors` are (field, message) pairs, fields as JSON paths
    (`distribution.process_count`)."""
    body = problem_body(status, HTTPStatus(status).phrase, title, errors)
    return JsonResponse(body, status=status, content_type=CONTENT_TYPE, headers=dict(headers or {}))


def exception_handler(error: Exception, context: Mapping[str, Any]) -> JsonResponse:
    """DRF's EXCEPTION_HANDLER: every exception becomes problem details, never HTML, and without a
    traceback."""
    set_rollback()
    if isinstance(error, ApiProblem):
        return problem(error.status, error.title, error.errors)
    if isinstance(error, SpecError):
        return problem(400, f"{error.field}: {error.message}", [(error.field, error.message)])
    if isinstance(error, Http404):
        return problem(404, "This does not exist, or you may not see it.")
    if isinstance(error, PermissionDenied):
        return problem(403, str(error) or "You may not do this.")
    if isinstance(error, RequestDataTooBig | TooManyFilesSent):
        most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE // 2**20
        return problem(
            413, f"The body of the request has more than the {most} MiB that the API reads; send less."
        )
    if isinstance(error, StoreUnavailable):
        return problem(503, str(error), headers={"Retry-After": "10"})
    if isinstance(error, exceptions.APIException):
        return _from_framework(error)
    if sentence := outage_of(error):
        answer = problem(503, f"{sentence} {REST}", headers={"Retry-After": str(RETRY_AFTER_S)})
        # As for pages: the background loop logs the outage once.
        answer._has_been_logged = True  # type: ignore[attr-defined]
        return answer
    # Our own fault: the operator gets the traceback, the client a sentence.
    logger.exception("%s failed", context.get("view"), exc_info=error)
    return problem(500, "TrainHub itself failed; the operator finds the traceback in the server log.")


def _from_framework(error: exceptions.APIException) -> JsonResponse:
    headers: dict[str, str] = {}
    if (auth_header := getattr(error, "auth_header", None)) is not None:
        headers["WWW-Authenticate"] = auth_header
    if (wait := getattr(error, "wait", None)) is not None:
        headers["Retry-After"] = str(int(wait) + 1)
    if isinstance(error, exceptions.NotAuthenticated):
        return problem(401, "Sign in, or send a token: Authorization: Bearer TOKEN.", headers=headers)
    if isinstance(error, exceptions.ValidationError):
        errors = list(_flatten(error.detail))
        return problem(400, "; ".join(f"{field}: {message}" for field, message in errors), errors, headers)
    return problem(error.status_code, str(error.detail), headers=headers)


def _flatten(detail: Any, path: str = "") -> Iterable[tuple[str, str]]:
    """Yields DRF's nested details as (JSON path, sentence) pairs."""
    if isinstance(detail, Mapping):
        for name, value in detail.items():
            yield from _flatten(value, _below(path, name))
    elif isinstance(detail, list | tuple):
        for index, value in enumerate(detail):
            yield from _flatten(value, path if isinstance(value, str) else f"{path}[{index}]")
    else:
        yield path or "body", str(detail)


def _below(path: str, name: object) -> str:
    if isinstance(name, int):
        return f"{path}[{name}]"
    if name == "non_field_errors":
        return path
    return f"{path}.{name}" if path else str(name)
