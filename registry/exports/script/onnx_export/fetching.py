"""The model's files, from the hub, by this run's own token."""

from __future__ import annotations

import hashlib
import os
import ssl
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import quote

from .reporting import Refusal
from .told import say, size_of
from .wanted import RemoteFile, Wanted

CHUNK_BYTES = 1024 * 1024
TRIES = 5
GONE = (401, 403, 404)


def fetch(wanted: Wanted, folder: Path) -> None:
    """Each file at its path below `folder`. Raises Refusal."""
    for file in wanted.files:
        target = (folder / file.path).resolve()
        if not target.is_relative_to(folder.resolve()):
            raise Refusal(f"The file {file.path!r} of the version leads out of its folder.", "file")
        target.parent.mkdir(parents=True, exist_ok=True)
        _persistently(wanted, file, target)
        say(f"Fetched {file.path} ({size_of(file.size_bytes)}).")


def _persistently(wanted: Wanted, file: RemoteFile, target: Path) -> None:
    """A hub that restarts, or whose answer is cut off, is asked again for some seconds; one that says no is
    not."""
    why = ""
    for attempt in range(1, TRIES + 1):
        try:
            found = _download(wanted, file, target)
        except urllib.error.HTTPError as error:
            why = f"the hub answers {error.code} {error.reason}"
            if error.code in GONE:
                break
        except OSError as error:
            why = str(error)
        else:
            if found == file.sha256:
                return
            why = f"it came with the SHA-256 {found[:12]}…, and {file.sha256[:12]}… was registered"
            if target.stat().st_size >= file.size_bytes:
                break
        if attempt < TRIES:
            time.sleep(2**attempt / 2)
    raise Refusal(
        f"{file.path} of {wanted.model} version {wanted.version} could not be fetched: {why}.", "file"
    )


def _download(wanted: Wanted, file: RemoteFile, target: Path) -> str:
    """The SHA-256 of what came."""
    model, path = quote(wanted.model, safe=""), quote(file.path)
    hub = os.environ["TRAINHUB_URL"].rstrip("/")
    address = f"{hub}/api/v1/models/{model}/versions/{wanted.version}/files/{path}"
    headers = {"Authorization": f"Bearer {os.environ['TRAINHUB_TOKEN']}"}
    asked = urllib.request.Request(address, headers=headers)  # noqa: S310 - the hub's own address
    digest = hashlib.sha256()
    # Where the hub serves HTTPS by an authority of its own, the node says which.
    trusted = ssl.create_default_context(cafile=os.environ.get("TRAINHUB_CA_FILE") or None)
    with urllib.request.urlopen(asked, timeout=60, context=trusted) as answer, target.open("wb") as out:  # noqa: S310
        while chunk := answer.read(CHUNK_BYTES):
            digest.update(chunk)
            out.write(chunk)
    return digest.hexdigest()
