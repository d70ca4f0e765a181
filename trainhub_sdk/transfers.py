"""Downloads to files, which go on where an earlier one was cut off."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from trainhub_sdk.api_connection import Answer, ApiConnection
from trainhub_sdk.errors import ConnectionBroken, HubRefused, TrainHubError

# Of broken connections, one after another, that bring nothing.
TRIES, PAUSE_S = 5, 1.0
PARTIAL, NOT_SATISFIABLE = 206, 416
PIECE_BYTES = 1024 * 1024
# Says to the hub that this client reads from its object store itself, if the hub sends it there.
REDIRECT, REDIRECTED = {"X-TrainHub-Redirect": "store"}, 307
STORE_TIMEOUT_S = 10.0


def download(
    api: ApiConnection,
    address: str,
    to: Path,
    sha256: str = "",
    on_bytes: Callable[[int], None] = lambda _: None,
) -> Path:
    """Writes what is at `address` to the file `to`, which is there only when it is complete. `sha256`: what
    it must have, "" if that is not known; `on_bytes` gets the length of each piece. Returns `to`. Raises
    HubUnreachable, HubRefused, TrainHubError for another content, and OSError of the disk."""
    to.parent.mkdir(parents=True, exist_ok=True)
    # Only a part of exactly this content can be continued.
    part = to.with_name(f".{to.name}.{sha256[:16] or os.getpid()}.part")
    if not sha256:
        part.unlink(missing_ok=True)
    tries = 0
    while True:
        before = _size(part)
        try:
            _append(api, address, part, on_bytes)
            break
        except ConnectionBroken:
            tries = 0 if _size(part) > before else tries + 1
            if tries == TRIES:
                raise
            time.sleep(PAUSE_S)
    if sha256 and file_sha256(part) != sha256:
        part.unlink()
        raise TrainHubError(f"{to.name} arrived with another content than the hub says: download it again.")
    os.replace(str(part), str(to))
    return to


def _append(api: ApiConnection, address: str, part: Path, on_bytes: Callable[[int], None]) -> None:
    offset = _size(part)
    span = {"Range": f"bytes={offset}-"} if offset else {}
    try:
        answer = api.open("GET", address, headers={**span, **(REDIRECT if api.reads_from_store else {})})
        if answer.status == REDIRECTED:
            answer = _open_in_store(api, answer, span) or api.open("GET", address, headers=span)
    except HubRefused as error:
        if offset and error.status == NOT_SATISFIABLE:
            return  # it is complete
        raise
    try:
        with part.open("ab" if answer.status == PARTIAL else "wb") as file:
            for piece in answer.pieces():
                file.write(piece)
                on_bytes(len(piece))
    finally:
        answer.close()


def _open_in_store(api: ApiConnection, redirect: Answer, span: dict[str, str]) -> Answer | None:
    """Returns the answer of the object store to which the hub sends; None if it cannot be read from here, and
    then it is not tried again. Raises HubRefused for a range that begins at the end."""
    location = redirect.headers["Location"] or ""
    redirect.close()
    try:
        # A connection of its own: that to the hub would send the token, and trust only the hub's authority.
        return ApiConnection(location.split("?", 1)[0], retry_s=0).open_whole(location, span, STORE_TIMEOUT_S)
    except HubRefused as error:
        if error.status == NOT_SATISFIABLE:
            raise
    except TrainHubError:
        pass
    api.reads_from_store = False
    return None


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def file_sha256(path: Path) -> str:
    """Returns the SHA-256 of a file, in hexadecimal. Raises OSError."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for piece in iter(lambda: file.read(PIECE_BYTES), b""):
            digest.update(piece)
    return digest.hexdigest()
