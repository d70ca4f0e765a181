"""Reads files of the hub from the object store to which the hub sends this node, if the node reaches it."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import httpx

log = logging.getLogger(__name__)
# Says to the hub that this client reads from the store itself.
REDIRECT_HEADERS = {"X-TrainHub-Redirect": "store"}
TIMEOUT = httpx.Timeout(30.0, connect=5.0)
# A store that this node does not reach is not tried again for so long: the hub sends the files itself.
PAUSE_S = 600.0


class StoreDownloads:
    """The store of a hub, as this node reaches it."""

    def __init__(self) -> None:
        self._try_at = 0.0

    def headers(self) -> dict[str, str]:
        """Returns the headers of a request to the hub for a file."""
        return REDIRECT_HEADERS if time.monotonic() >= self._try_at else {}

    def append(self, address: str, to: Path) -> bool:
        """Adds what `to` lacks of the file at `address`, which the hub has signed. Returns False if the store
        cannot be read. Raises OSError of the local disk."""
        try:
            # A client of its own: that of the hub would send its token and trust only its authority.
            with (
                httpx.Client(timeout=TIMEOUT) as client,
                client.stream("GET", address, headers=range_headers(to)) as answer,
            ):
                if answer.status_code != httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
                    answer.raise_for_status()
                    append_answer(answer, to)
        except httpx.HTTPError as error:
            self._try_at = time.monotonic() + PAUSE_S
            log.warning("The hub's object store cannot be read, and the hub sends its files: %s", type(error))
            return False
        return True


def range_headers(to: Path) -> dict[str, str]:
    """Returns the header for what a part of a file still lacks."""
    size = to.stat().st_size if to.exists() else 0
    return {"Range": f"bytes={size}-"} if size else {}


def append_answer(answer: httpx.Response, to: Path) -> None:
    """Writes the body of an answer to the file. A server without ranges answers with the whole file, which
    replaces the part. Raises httpx.HTTPError, and OSError of the disk."""
    mode = "ab" if answer.status_code == httpx.codes.PARTIAL_CONTENT else "wb"
    with to.open(mode) as file:
        for chunk in answer.iter_bytes():
            file.write(chunk)
