"""Serves static files from the folders of the project and its apps, without collectstatic and without a CDN.

Pages name a file with the version of all files, `/static/v-<digest>/js/frame.js`: browsers keep it for as
long as they like, and an upgrade gives every file a new address. ES modules import each other by relative
paths, so they stay within one version. Text is compressed once and kept in memory."""

from __future__ import annotations

import gzip
import hashlib
import os
from functools import cache
from pathlib import Path, PurePosixPath
from threading import Lock

import brotli
from django.contrib.staticfiles.finders import AppDirectoriesFinder, FileSystemFinder
from django.contrib.staticfiles.storage import StaticFilesStorage
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import FileResponse, Response
from starlette.staticfiles import NotModifiedResponse, StaticFiles
from starlette.types import Scope

from trainhub.web.encodings import accepted_encoding

VERSION_PREFIX = "v-"
# What every page loads, in one request each. Their parts stay files of their own, which developers edit.
BUNDLES = {
    "bundles/frame.css": (
        "bootstrap/css/bootstrap.min.css",
        "css/tokens.css",
        "css/base.css",
        "css/components.css",
        "css/pages.css",
    ),
    "bundles/early.js": ("js/theme.js", "js/measures.js"),
    # Beside its parts, because it imports other modules by relative paths.
    "js/frame.bundle.js": (
        "js/frame.js",
        "js/keys.js",
        "js/form-errors.js",
        "js/scrollers.js",
        "js/mlflow-links.js",
    ),
}
MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# The best quality takes seconds for Plotly, and the first visitor waits for it.
BEST_QUALITY, QUALITY, LARGE_BYTES = 11, 9, 256 * 1024
KEEP = "public, max-age=31536000, immutable"


class VersionedStorage(StaticFilesStorage):
    """Gives pages the addresses of static files with the version of all of them."""

    def url(self, name: str | None) -> str:
        return super().url(f"{VERSION_PREFIX}{version()}/{name}")


class HubStatic(StaticFiles):
    """Serves files with their version, which browsers keep, and without, which they ask for again."""

    def __init__(self) -> None:
        super().__init__(check_dir=False)
        self.all_directories = list(_folders())
        self._compressed: dict[tuple[str, str], tuple[str, bytes]] = {}
        self._lock = Lock()

    async def get_response(self, path: str, scope: Scope) -> Response:
        first, _, rest = path.partition(os.sep)
        is_versioned = first.startswith(VERSION_PREFIX)
        name = (rest if is_versioned else path).replace(os.sep, "/")
        response = await self._respond(name, Headers(scope=scope), scope)
        # A page of the earlier version may still be open after an upgrade, and gets files of this one.
        response.headers["Cache-Control"] = KEEP if first == VERSION_PREFIX + version() else "no-cache"
        if PurePosixPath(name).suffix in MEDIA_TYPES:
            response.headers["Vary"] = "Accept-Encoding"
        return response

    async def _respond(self, name: str, headers: Headers, scope: Scope) -> Response:
        # Answers everything that is wrong with the path or the method, for a bundle by its first part.
        response = await super().get_response(BUNDLES.get(name, (name,))[0], scope)
        encoding = accepted_encoding(headers.get("accept-encoding", ""))
        is_whole_text = PurePosixPath(name).suffix in MEDIA_TYPES and "range" not in headers
        if name not in BUNDLES and not (encoding and is_whole_text and isinstance(response, FileResponse)):
            return response
        body, tag = await run_in_threadpool(self._body, name, encoding)
        response = Response(body, media_type=MEDIA_TYPES[PurePosixPath(name).suffix], headers={"ETag": tag})
        if encoding:
            response.headers["Content-Encoding"] = encoding
        if self.is_not_modified(response.headers, headers):
            return NotModifiedResponse(response.headers)
        return response

    def _body(self, name: str, encoding: str) -> tuple[bytes, str]:
        """Returns the content in that encoding ("" for none), and its ETag."""
        paths = [self.lookup_path(part)[0] for part in BUNDLES.get(name, (name,))]
        content = b"\n".join(Path(path).read_bytes() for path in paths)
        digest = hashlib.sha256(content).hexdigest()[:32]
        tag = f'"{digest}-{encoding}"' if encoding else f'"{digest}"'
        if not encoding:
            return content, tag
        with self._lock:
            stored_tag, body = self._compressed.get((name, encoding), ("", b""))
            # A developer edits files while the hub runs.
            if stored_tag != tag:
                body = _compress(content, encoding)
                self._compressed[name, encoding] = tag, body
        return body, tag


@cache
def version() -> str:
    """Returns a digest of all static files, computed once in a process."""
    digest = hashlib.sha256(repr(BUNDLES).encode())
    for folder in _folders():
        for path in sorted(path for path in Path(folder).rglob("*") if path.is_file()):
            digest.update(f"{path.relative_to(folder)}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _folders() -> list[str]:
    finders = (FileSystemFinder(), AppDirectoriesFinder())
    return [str(storage.location) for finder in finders for storage in finder.storages.values()]


def _compress(content: bytes, encoding: str) -> bytes:
    if encoding == "gzip":
        return gzip.compress(content, mtime=0)
    quality = QUALITY if len(content) > LARGE_BYTES else BEST_QUALITY
    compressed: bytes = brotli.compress(content, mode=brotli.MODE_TEXT, quality=quality)
    return compressed
