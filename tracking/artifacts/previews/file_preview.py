"""Previews of files, made on the server so that no browser interprets untrusted files."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass, replace
from pathlib import PurePosixPath

from django.utils.safestring import SafeString

from tracking import notes
from tracking.artifacts.file_owners import FileRow
from tracking.artifacts.file_responses import image_type
from tracking.artifacts.previews import documents, isolation, tables
from tracking.artifacts.previews.documents import NotPreviewable
from tracking.artifacts.previews.isolation import PreviewBusy
from tracking.artifacts.previews.tables import PreviewTable
from workspaces.stored_files import blob_cache, blobs

log = logging.getLogger(__name__)
MAX_TEXT_BYTES = documents.MAX_TEXT
MAX_IMAGE_BYTES = 50 * 1024 * 1024
MARKDOWN = (".md", ".markdown")
_MAX_CHARACTER_BYTES = 4


@dataclass(frozen=True)
class FilePreview:
    """`kind` is text, markdown, image, table or figure; "" if there is no preview. `sentence` says why
    there is none, or why the file is shown as text.

    `is_cut` says that only the beginning is shown.
    """

    kind: str
    text: str = ""
    html: SafeString | None = None
    table: PreviewTable | None = None
    is_cut: bool = False
    sentence: str = ""


def preview_file(row: FileRow) -> FilePreview:
    """Returns the preview of a file."""
    suffix = PurePosixPath(row.path).suffix.lower()
    if not blobs.exists(row.sha256):
        return FilePreview(
            "", sentence="Its bytes are missing on the hub; restore the data folder from a backup."
        )
    if image_type(row.path) is not None:
        if row.size_bytes <= MAX_IMAGE_BYTES:
            return FilePreview("image")
        return FilePreview("", sentence="The image is too large to be shown here.")
    if suffix == ".json":
        try:
            document = isolation.isolated_preview_json(blob_cache.local_path(row.sha256), row.size_bytes)
        except (NotPreviewable, PreviewBusy) as reason:
            log.debug("%s is shown as plain text: %s", row.path, reason)
            return replace(_text_preview(row, suffix), sentence=f"Shown as plain text: {reason}.")
        return FilePreview(document.kind, text=document.text, table=document.table, is_cut=document.is_cut)
    return _text_preview(row, suffix)


def as_data(preview: FilePreview) -> dict[str, object]:
    """Returns the preview of a table, a figure or text as JSON, from which a page draws it."""
    return {
        "kind": preview.kind,
        "text": preview.text,
        "table": preview.table and asdict(preview.table),
        "is_cut": preview.is_cut,
        "sentence": preview.sentence,
    }


def _text_preview(row: FileRow, suffix: str) -> FilePreview:
    with blob_cache.local_path(row.sha256).open("rb") as file:
        data = file.read(MAX_TEXT_BYTES)
    is_cut = row.size_bytes > len(data)
    text = _decode(data, is_cut=is_cut)
    if text is None:
        return FilePreview("", sentence="There is no preview of this kind of file.")
    if suffix in MARKDOWN:
        return FilePreview("markdown", html=notes.render(text), is_cut=is_cut)
    if suffix in (".csv", ".tsv"):
        table = tables.parse_csv(
            text, delimiter="\t" if suffix == ".tsv" else tables.delimiter_of(text), is_cut=is_cut
        )
        if table is not None:
            return FilePreview("table", table=table, is_cut=table.is_cut)
    return FilePreview("text", text=text, is_cut=is_cut)


def _decode(data: bytes, *, is_cut: bool) -> str | None:
    """Decodes UTF-8 whose last character may be cut; returns None if it is not text."""
    if b"\0" in data:
        return None
    # A UTF-8 character has at most four bytes, of which the cut may leave one to three.
    for cut_bytes in range(_MAX_CHARACTER_BYTES if is_cut else 1):
        try:
            return data[: len(data) - cut_bytes].decode()
        except UnicodeDecodeError:
            continue
    return None
