"""Compresses what Django answers as text."""

from __future__ import annotations

import zlib

import brotli
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.utils.cache import patch_vary_headers

from trainhub.web.encodings import accepted_encoding

PAGES = ("text/html", "image/svg+xml")
DATA = ("text/csv", "text/plain", "application/json", "application/problem+json")
MIN_BYTES = 200
# Of the numbers of a chart, these levels leave 26 and 30 % of the bytes, and take a fifth of the time of
# gzip's usual level, which leaves 25 %. With that, the compression took longer than finding the numbers.
BROTLI_QUALITY, DEFLATE_LEVEL = 2, 2
# zlib's largest window, with the header of gzip.
_GZIP_WINDOW = 31


class CompressedText(GZipMiddleware):
    """Compresses pages and data, but neither files nor pages that show a secret.

    The size of a compressed page depends on its content. Django masks CSRF tokens anew in each answer and
    adds a random number of bytes, so that attackers who see only sizes learn nothing of them (BREACH). Pages
    that show another secret say `no-transform`. Data contain no such token."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip()
        is_attachment = "Content-Disposition" in response.headers
        if not isinstance(response, HttpResponse) or is_attachment or _keeps_form(response):
            return response
        if kind in DATA:
            return _compress_data(request, response)
        return super().process_response(request, response) if kind in PAGES else response


def _compress_data(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    if len(response.content) < MIN_BYTES or response.has_header("Content-Encoding"):
        return response
    patch_vary_headers(response, ("Accept-Encoding",))
    encoding = accepted_encoding(request.headers.get("Accept-Encoding", ""))
    if not encoding:
        return response
    content = _compress(response.content, encoding)
    if len(content) >= len(response.content):
        return response
    response.content = content
    response.headers["Content-Length"] = str(len(content))
    response.headers["Content-Encoding"] = encoding
    etag = response.headers.get("ETag", "")
    if etag.startswith('"'):
        # Only identical bytes may have the same strong ETag.
        response.headers["ETag"] = f"W/{etag}"
    return response


def _compress(data: bytes, encoding: str) -> bytes:
    if encoding == "br":
        return bytes(brotli.compress(data, quality=BROTLI_QUALITY))
    return zlib.compress(data, DEFLATE_LEVEL, _GZIP_WINDOW)


def _keeps_form(response: HttpResponse) -> bool:
    return "no-transform" in response.headers.get("Cache-Control", "")
