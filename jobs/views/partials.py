"""Renders views as a whole page or, for htmx, only as the part of the page that changes."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_cache_control, patch_vary_headers


def wants_part(request: HttpRequest) -> bool:
    """Returns whether htmx requests a part of the page. A restored history entry needs the whole page."""
    return "HX-Request" in request.headers and "HX-History-Restore-Request" not in request.headers


def render_part(request: HttpRequest, page: str, part: str, context: dict[str, Any]) -> HttpResponse:
    """Renders the template `part` for requests of htmx, otherwise the template `page`.

    Both have the same URL, so the response must not be cached."""
    response = render(request, part if wants_part(request) else page, context)
    patch_vary_headers(response, ["HX-Request"])
    patch_cache_control(response, no_store=True)
    return response
