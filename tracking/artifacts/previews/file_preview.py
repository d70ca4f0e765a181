"""What a page can show of a file without handing it to the browser as it is."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import PurePosixPath

from django.utils.safestring import SafeString

from tracking import notes
from tracking.artifacts.file_owners import Row
from tracking.artifacts.file_responses import image_type
from tracking.artifacts.previews import documents, isolation, tables
from tracking.artifacts.previews.documents import NotShown
from tracking.artifacts.previews.isolation import MAX_JSON_BYTES, Busy
from tracking.artifacts.previews.tables import Table
from workspaces.stored_files import blobs

log = logging.getLogger(__name__)
MOST_TEXT_BYTES = documents.MAX_TEXT
MOST_IMAGE_BYTES = 50 * 1024 * 1024
MARKDOWN = (".md", ".markdown")
_LONGEST_CHARACTER_BYTES = 4


@dataclass(frozen=True)
class Preview:
    """`kind`: text, markdown, image, table, figure; "" where there is nothing to show, and `sentence` says
    why.

    `is_cut`: only the beginning is shown.
    """

    kind: str
    text: str = ""
    html: SafeString | None = None
    table: Table | None = None
    is_cut: bool = False
    sentence: str = ""


def preview(row: Row) -> Preview:
    """Of a file whose bytes are here, else a word that they are not."""
    suffix = PurePosixPath(row.path).suffix.lower()
    if not blobs.exists(row.sha256):
        return Preview(
            "", sentence="Its bytes are missing on the hub; restore the data folder from a backup."
        )
    if image_type(row.path) is not None:
        if row.size_bytes <= MOST_IMAGE_BYTES:
            return Preview("image")
        return Preview("", sentence="The image is too large to be shown here.")
    if suffix == ".json" and row.size_bytes <= MAX_JSON_BYTES:
        try:
            shown = isolation.document(blobs.path(row.sha256), row.size_bytes)
        except (NotShown, Busy) as reason:
            log.debug("%s is shown as plain text: %s", row.path, reason)
        else:
            return Preview(shown.kind, text=shown.text, table=shown.table, is_cut=shown.is_cut)
    return _of_text(row, suffix)


def _of_text(row: Row, suffix: str) -> Preview:
    with blobs.path(row.sha256).open("rb") as file:
        data = file.read(MOST_TEXT_BYTES)
    is_cut = row.size_bytes > len(data)
    text = _decoded(data, is_cut=is_cut)
    if text is None:
        return Preview("", sentence="There is no preview of this kind of file.")
    if suffix in MARKDOWN:
        return Preview("markdown", html=notes.render(text), is_cut=is_cut)
    if suffix in (".csv", ".tsv"):
        table = tables.of_text(
            text, delimiter="\t" if suffix == ".tsv" else tables.delimiter_of(text), is_cut=is_cut
        )
        if table is not None:
            return Preview("table", table=table, is_cut=table.is_cut)
    return Preview("text", text=text, is_cut=is_cut)


def _decoded(data: bytes, *, is_cut: bool) -> str | None:
    """UTF-8 (the last character may be cut), or None for what is no text."""
    if b"\0" in data:
        return None
    for short in range(_LONGEST_CHARACTER_BYTES if is_cut else 1):
        try:
            return data[: len(data) - short].decode()
        except UnicodeDecodeError:
            continue
    return None
