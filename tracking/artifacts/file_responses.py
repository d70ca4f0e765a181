"""Responses with file bytes: always a download, never a page of this origin."""

from __future__ import annotations

import mimetypes
from pathlib import PurePosixPath

from starlette.responses import Response

from jobs.models import StoredOutput
from jobs.stored_outputs.download import stored_output_response
from jobs.transfer.downloads import SAFE_HEADERS
from tracking.artifacts.file_owners import ListedFile
from workspaces.models import User
from workspaces.stored_files import blobs
from workspaces.stored_files.conditional_response import OCTETS
from workspaces.stored_files.responses import StoredFileResponse

IMAGES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".svg": "image/svg+xml",
    ".bmp": "image/bmp",
    ".avif": "image/avif",
}
SOUNDS = {
    ".wav": "audio/wav",
    ".mp3": "audio/mpeg",
    ".ogg": "audio/ogg",
    ".flac": "audio/flac",
    ".m4a": "audio/mp4",
}
TABLES = (".csv", ".tsv")
PAGES = (".html", ".htm")
# The sandbox also applies if an image is opened by itself: an SVG's scripts do not run.
HEADERS = {**SAFE_HEADERS, "Cross-Origin-Resource-Policy": "same-origin"}
# Suffixes, and names without one, that MLflow's server serves as plain text.
_TEXT = frozenset(
    (
        "txt",
        "log",
        "err",
        "cfg",
        "conf",
        "cnf",
        "cf",
        "ini",
        "properties",
        "prop",
        "hocon",
        "toml",
        "yaml",
        "yml",
        "xml",
        "json",
        "js",
        "py",
        "py3",
        "csv",
        "tsv",
        "md",
        "rst",
        "ipynb",
        "MLmodel",
        "MLproject",
    )
)
# Without the system's tables, which differ between machines.
_TYPES = mimetypes.MimeTypes()


def download(row: ListedFile, reader: User | None, *, media_type: str = OCTETS) -> Response:
    """Returns the file's bytes; supports Range and conditional requests. `reader`: who downloads it. Raises
    Problem if the hub cannot read the datastore in which it lies."""
    if isinstance(row, StoredOutput):
        return stored_output_response(row, reader, HEADERS, media_type)
    headers = {**HEADERS, "X-Content-SHA256": row.sha256}
    return StoredFileResponse(
        blobs.path(row.sha256),
        sha256=row.sha256,
        media_type=media_type,
        filename=PurePosixPath(row.path).name,
        modified_at=row.created_at,
        headers=headers,
    )


def mlflow_type(path: str) -> str:
    """Returns the content type with which MLflow's server sends a file of that name. The response is still a
    download."""
    name = PurePosixPath(path).name
    ending = PurePosixPath(name).suffix.removeprefix(".") or name
    if ending in _TEXT:
        return "text/plain"
    return _TYPES.guess_type(name)[0] or OCTETS


def image_type(path: str) -> str | None:
    """Returns the content type for an `<img>`, or None if the file is not an image."""
    return IMAGES.get(PurePosixPath(path).suffix.lower())


def sound_type(path: str) -> str | None:
    """Returns the content type for an `<audio>`, or None if the file is not a sound."""
    return SOUNDS.get(PurePosixPath(path).suffix.lower())
