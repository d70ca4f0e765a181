"""Downloads the model's files from the hub with this run's own token."""

from __future__ import annotations

import hashlib
import os
import ssl
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import quote

from .report import ExportRefusal
from .request import ExportRequest, RemoteFile
from .run_log import format_size, write_line

CHUNK_BYTES = 1024 * 1024
TRIES = 5
# Answers that another attempt would not change.
REFUSALS = (401, 403, 404)


def fetch(request: ExportRequest, folder: Path) -> None:
    """Downloads each file to its path below `folder`. Raises ExportRefusal."""
    for file in request.files:
        target = (folder / file.path).resolve()
        if not target.is_relative_to(folder.resolve()):
            raise ExportRefusal(f"The file {file.path!r} of the version leads out of its folder.", "file")
        target.parent.mkdir(parents=True, exist_ok=True)
        _download_with_retries(request, file, target)
        write_line(f"Fetched {file.path} ({format_size(file.size_bytes)}).")


def _download_with_retries(request: ExportRequest, file: RemoteFile, target: Path) -> None:
    """Downloads one file. It tries again for some seconds if the hub restarts or the response is cut off, but
    not if the hub refuses."""
    why = ""
    for attempt in range(1, TRIES + 1):
        try:
            digest = _download(request, file, target)
        except urllib.error.HTTPError as error:
            # HTTPError is an OSError too, so it must be caught before that one.
            why = f"the hub answers {error.code} {error.reason}"
            if error.code in REFUSALS:
                break
        except OSError as error:
            why = str(error)
        else:
            if digest == file.sha256:
                return
            why = f"it came with the SHA-256 {digest[:12]}…, and {file.sha256[:12]}… was registered"
            # Nothing was cut off: fetching again would bring the same bytes.
            if target.stat().st_size >= file.size_bytes:
                break
        if attempt < TRIES:
            time.sleep(2**attempt / 2)
    raise ExportRefusal(
        f"{file.path} of {request.model} version {request.version} could not be fetched: {why}.", "file"
    )


def _download(request: ExportRequest, file: RemoteFile, target: Path) -> str:
    """Writes the file to `target` and returns the SHA-256 of the bytes received."""
    model, path = quote(request.model, safe=""), quote(file.path)
    hub = os.environ["TRAINHUB_URL"].rstrip("/")
    address = f"{hub}/api/v1/models/{model}/versions/{request.version}/files/{path}"
    headers = {"Authorization": f"Bearer {os.environ['TRAINHUB_TOKEN']}"}
    http_request = urllib.request.Request(address, headers=headers)  # noqa: S310 - the hub's own address
    digest = hashlib.sha256()
    # Where the hub serves HTTPS by an authority of its own, the node says which.
    trusted = ssl.create_default_context(cafile=os.environ.get("TRAINHUB_CA_FILE") or None)
    response = urllib.request.urlopen(http_request, timeout=60, context=trusted)  # noqa: S310
    with response as answer, target.open("wb") as out:
        while chunk := answer.read(CHUNK_BYTES):
            digest.update(chunk)
            out.write(chunk)
    return digest.hexdigest()
