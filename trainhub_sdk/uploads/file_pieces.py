"""A file of this machine, and how it is sent to the hub in pieces."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Callable, NamedTuple

from trainhub_sdk.api_connection import ApiConnection
from trainhub_sdk.errors import HubRefused, UploadError
from trainhub_sdk.transfers import file_sha256

PIECE_BYTES = 8 * 1024 * 1024
TIMEOUT_S = 300.0
# A piece that has arrived already: the answer to it was lost.
CONFLICT = 409
OFFSET = "Not at this offset"
# Python 3.8 knows no `[…]` of the class of the same name in collections.abc.
OnBytes = Callable[[int], None]


def ignore_progress(sent_bytes: int) -> None:
    """For those who do not show how far an upload is."""


class NewFile(NamedTuple):
    """A file of a version that is made. `local`: where this machine has it, "" if the hub has the content;
    `modified_at`: in seconds since 1970."""

    path: str
    size: int
    sha256: str
    local: str = ""
    modified_at: float | None = None


def describe_file(file: Path, path: str) -> NewFile:
    """Reads a file of this machine, which is `path` in the version. Raises UploadError."""
    try:
        facts = file.stat()
        return NewFile(path, facts.st_size, file_sha256(file), str(file), facts.st_mtime)
    except OSError as error:
        raise UploadError(f"{file} cannot be read: {error.strerror}.") from error


def send_pieces(
    api: ApiConnection,
    target: str,
    file: NewFile,
    offset: int,
    *,
    on_bytes: OnBytes = ignore_progress,
    query: Mapping[str, Any] | None = None,
) -> None:
    """Sends the file from `offset` to its end. `on_bytes` gets the length of each piece that was sent. Raises
    UploadError if it is not the one that was described any more, HubUnreachable and HubRefused."""
    try:
        stream = open(file.local, "rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise UploadError(f"{file.local} cannot be read: {error.strerror}.") from error
    with stream:
        stream.seek(offset)
        while True:
            length = min(PIECE_BYTES, file.size - offset)
            piece = stream.read(length)
            if len(piece) < length:
                raise changed(file)
            span = f"{offset}-{offset + length - 1}" if length else "*"
            headers = {
                "Content-Type": "application/octet-stream",
                "Content-Range": f"bytes {span}/{file.size}",
            }
            api.open("PUT", target, query=query, body=piece, headers=headers, timeout=TIMEOUT_S).read()
            on_bytes(length)
            offset += length
            if offset == file.size:
                return


def changed(file: NewFile) -> UploadError:
    """Returns the error for a file that has another content than was described."""
    return UploadError(f"{file.local} was changed while it was sent: upload it again.")


def is_at_another_offset(error: HubRefused) -> bool:
    """Returns whether the hub has more of the file, or less, than was thought."""
    return error.status == CONFLICT and error.body.get("title") == OFFSET
