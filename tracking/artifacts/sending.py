"""How file bytes leave: always as a download, never as a page of ours."""

from __future__ import annotations

from pathlib import PurePosixPath

from starlette.responses import FileResponse

from jobs.bytes.downloads import SAFE
from tracking.artifacts.places import Row
from workspaces import blobs

PIECE_BYTES = 2 * 1024 * 1024
UNKNOWN = "application/octet-stream"
IMAGES = {
    ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp",
    ".svg": "image/svg+xml", ".bmp": "image/bmp", ".avif": "image/avif",
}
HEADERS = {**SAFE, "Cross-Origin-Resource-Policy": "same-origin"}
"""The sandbox holds even where an image is opened by itself: an SVG's scripts do not run."""


class Download(FileResponse):
    # Each piece costs a thread switch.
    chunk_size = PIECE_BYTES


def download(row: Row, *, media_type: str = UNKNOWN) -> Download:
    """With Range."""
    headers = {**HEADERS, "ETag": f'"{row.sha256}"', "X-Content-SHA256": row.sha256}
    name = PurePosixPath(row.path).name
    return Download(blobs.path(row.sha256), media_type=media_type, filename=name, headers=headers)


def image_type(path: str) -> str | None:
    """The type under which an `<img>` may show the file; None for what is no image."""
    return IMAGES.get(PurePosixPath(path).suffix.lower())
