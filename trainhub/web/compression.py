"""Compresses what Django answers as text."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware

TEXT = (
    "text/html",
    "text/csv",
    "text/plain",
    "application/json",
    "application/problem+json",
    "image/svg+xml",
)


class CompressedText(GZipMiddleware):
    """Compresses pages and data, but neither files nor pages that show a secret.

    The size of a compressed page depends on its content. Django masks CSRF tokens anew in each answer and
    adds a random number of bytes, so that attackers who see only sizes learn nothing of them (BREACH). Pages
    that show another secret say `no-transform`."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip()
        is_attachment = "Content-Disposition" in response.headers
        if response.streaming or is_attachment or kind not in TEXT or _keeps_form(response):
            return response
        return super().process_response(request, response)


def _keeps_form(response: HttpResponseBase) -> bool:
    return "no-transform" in response.headers.get("Cache-Control", "")
