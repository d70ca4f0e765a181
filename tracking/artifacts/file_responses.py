"""How file bytes leave: always as a download, never as a page of ours."""

from __future__ import annotations

import mimetypes
from pathlib import PurePosixPath

from jobs.transfer.downloads import SAFE
from tracking.artifacts.file_owners import Row
from workspaces.stored_files import blobs
from workspaces.stored_files.responses import OCTETS, StoredFileResponse

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
HEADERS = {**SAFE, "Cross-Origin-Resource-Policy": "same-origin"}
"""The sandbox holds even where an image is opened by itself: an SVG's scripts do not run."""
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
"""What MLflow's server calls plain text: endings, and names without one."""
# Without the tables of the machine, which differ from one to the next.
_TYPES = mimetypes.MimeTypes()


def download(row: Row, *, media_type: str = OCTETS) -> StoredFileResponse:
    """With Range and conditions."""
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
    """The content type under which MLflow's own server sends a file of that name. The answer is a download
    all the same."""
    name = PurePosixPath(path).name
    ending = PurePosixPath(name).suffix.removeprefix(".") or name
    if ending in _TEXT:
        return "text/plain"
    return _TYPES.guess_type(name)[0] or OCTETS


def image_type(path: str) -> str | None:
    """The type under which an `<img>` may show the file; None for what is no image."""
    return IMAGES.get(PurePosixPath(path).suffix.lower())
