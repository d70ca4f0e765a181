"""The page that lists the operations of the REST API, made from the same schema that clients read."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied, RequestDataTooBig, TooManyFilesSent
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.defaultfilters import filesizeformat
from django.views import defaults
from drf_spectacular.generators import SchemaGenerator

from workspaces.access import WorkspaceRequest, needs, principal
from workspaces.database.outages import outage_of
from workspaces.http.outage_answers import outage_response
from workspaces.states import Role

METHODS = ("get", "head", "post", "put", "patch", "delete")


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    summary: str
    parameters: tuple[str, ...]

    @property
    def area(self) -> str:
        return self.path.removeprefix("/api/v1/").split("/")[0]


@needs(Role.VIEWER)
def api_page(request: WorkspaceRequest) -> HttpResponse:
    # The root itself is in no area; the page names it above the lists.
    areas = groupby((item for item in operations() if item.area), key=lambda operation: operation.area)
    groups = [(area, list(rows)) for area, rows in areas]
    return render(request, "trainhub/api.html", {"groups": groups, "base": settings.API_URL})


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answers for forms that are too large to be read, before any view is asked, and for what no browser
    sends."""
    _set_principal(request)
    if not isinstance(exception, RequestDataTooBig | TooManyFilesSent):
        reason = "The hub does not understand this request. Go back, load the page again, and send it anew."
        return render(request, "400.html", {"reason": reason}, status=400)
    most = filesizeformat(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
    reason = f"The hub takes at most {most} of text in one form. Nothing was changed. Go back, and send less."
    return render(request, "400.html", {"reason": reason}, status=413)


def server_error(request: HttpRequest) -> HttpResponse:
    """Answers when a view has failed; Django calls it while it handles the exception."""
    if sentence := outage_of(sys.exc_info()[1]):
        return outage_response(request, sentence)
    return defaults.server_error(request)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answers for addresses without a view, too."""
    _set_principal(request)
    return defaults.page_not_found(request, exception)


def _set_principal(request: HttpRequest) -> None:
    """Sets the principal, which the frame of a page needs, where no view has done so."""
    if not hasattr(request, "principal"):
        with suppress(Http404, PermissionDenied):
            who = principal(request)
            if not who.user.password_is_one_time:
                request.principal = who  # type: ignore[attr-defined]


@lru_cache(maxsize=1)
def operations() -> tuple[Operation, ...]:
    """Returns every operation of the schema, sorted by area and path. Cached, because the schema cannot
    change while the process runs."""
    generator: Any = SchemaGenerator
    paths = generator().get_schema(request=None, public=True)["paths"]
    operations = [
        _operation(method, path, paths[path][method])
        for path in paths
        for method in METHODS
        if method in paths[path]
    ]
    return tuple(
        sorted(
            operations,
            key=lambda operation: (operation.area, operation.path, METHODS.index(operation.method.lower())),
        )
    )


def _operation(method: str, path: str, described: dict[str, Any]) -> Operation:
    text = described.get("summary") or described.get("description") or ""
    parameters = tuple(item["name"] for item in described.get("parameters", []) if item["in"] == "query")
    return Operation(method.upper(), path, text.split("\n\n")[0], parameters)
