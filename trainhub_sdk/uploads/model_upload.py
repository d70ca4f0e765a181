"""Uploads files of this machine as a version of a model. What arrived before a break is not sent again."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainhub_sdk.addresses import escape
from trainhub_sdk.api_connection import ApiConnection
from trainhub_sdk.errors import HubRefused, HubUnreachable
from trainhub_sdk.models import ModelVersion
from trainhub_sdk.transfers import PAUSE_S, TRIES
from trainhub_sdk.uploads.file_pieces import (
    NewFile,
    changed,
    describe_file,
    is_at_another_offset,
    send_pieces,
)
from trainhub_sdk.uploads.local_files import local_files

# The hub signs a certificate of all files before it answers.
TIMEOUT_S = 600.0
WRONG_CONTENT = 422


def model_files(path: str | Path) -> dict[str, Path]:
    """Returns a file under its own name, or the files of a folder by their paths in it. Raises TrainHubError
    if there are none."""
    return local_files(path, "the files of the model")


def upload_version(
    api: ApiConnection,
    name: str,
    files: Mapping[str, Path],
    description: str = "",
    tags: Mapping[str, str] | None = None,
) -> ModelVersion:
    """Registers files as the next version of the model `name`, which is made if there is none. `files`: by
    their path in the version. What the workspace has already, or this person has sent before, is not sent.
    Returns the version. Raises UploadError,
    HubUnreachable and HubRefused."""
    rows = []
    for path, local in files.items():
        file = describe_file(local, path)
        _send(api, file)
        rows.append({"path": path, "sha256": file.sha256})
    body = {"files": rows, "description": description, "tags": dict(tags or {})}
    answer: Any = api.open(
        "POST",
        f"/api/v1/models/{escape(name)}/versions/",
        body=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
        timeout=TIMEOUT_S,
    ).json()
    return ModelVersion.of(api, answer)


def _send(api: ApiConnection, file: NewFile) -> None:
    """Sends what the hub lacks of the file, and goes on after a break where it was."""
    address = f"/api/v1/uploads/{file.sha256}"
    tries, before = 0, -1
    while True:
        answer = api.open("HEAD", address)
        answer.close()
        if answer.headers.get("Upload-Complete") == "true":
            return
        offset = int(answer.headers.get("Upload-Offset") or 0)
        tries = tries + 1 if offset <= before else 0
        if tries == TRIES:
            raise HubUnreachable(api.url, f"the connection broke {tries} times at {file.path}")
        before = offset
        try:
            send_pieces(api, address, file, offset)
        except HubUnreachable:
            time.sleep(PAUSE_S)
        except HubRefused as error:
            if error.status == WRONG_CONTENT:
                raise changed(file) from error
            if not is_at_another_offset(error):
                raise
