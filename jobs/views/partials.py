"""One view, one partial: htmx gets the part that the page includes."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_cache_control, patch_vary_headers


def wants_part(request: HttpRequest) -> bool:
    """Going back in the browser's history asks for the whole page again."""
    return "HX-Request" in request.headers and "HX-History-Restore-Request" not in request.headers


def render_part(request: HttpRequest, page: str, part: str, context: dict[str, Any]) -> HttpResponse:
    """`part` for htmx, `page` for everybody else; no cache may take the one for the other."""
    response = render(request, part if wants_part(request) else page, context)
    patch_vary_headers(response, ["HX-Request"])
    patch_cache_control(response, no_store=True)
    return response
