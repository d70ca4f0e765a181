"""Registers files of this machine."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainhub_azureml.exceptions import UserErrorException
from trainhub_azureml.models.version_tags import FOLDER
from trainhub_azureml.run import Run
from trainhub_azureml.run_files import MODELS
from trainhub_sdk.errors import HubRefused, HubUnreachable, TrainHubError
from trainhub_sdk.uploads.model_upload import model_files, upload_version

if TYPE_CHECKING:
    from trainhub_azureml.workspace import Workspace


def register_files(
    workspace: Workspace,
    name: str,
    path: str,
    child_paths: Iterable[str] | None,
    description: str,
    tags: Mapping[str, str],
) -> int:
    """Registers a file or folder. Returns the number of the version. Raises UserErrorException for files that
    cannot be sent, and HubRefused."""
    try:
        files = _chosen(model_files(path), child_paths, path)
        all_tags = dict(tags)
        if os.path.isdir(path):
            all_tags[FOLDER] = os.path.basename(os.path.realpath(path))
        context = Run.get_context()
        if isinstance(context, Run):
            return _register_in_job(context, name, files, description, all_tags)
        return upload_version(workspace._client().api, name, files, description, all_tags).version
    except (HubRefused, HubUnreachable):
        raise
    except TrainHubError as error:
        raise UserErrorException(f"Model.register: {error}", error) from error


def _chosen(files: dict[str, Path], child_paths: Iterable[str] | None, path: str) -> dict[str, Path]:
    if child_paths is None:
        return files
    chosen: dict[str, Path] = {}
    for child in child_paths:
        below = os.path.normpath(child).replace(os.sep, "/")
        same = {name: file for name, file in files.items() if name == below or name.startswith(f"{below}/")}
        if not same:
            raise UserErrorException(f"Model.register: child_paths names {child}, which is not in {path}.")
        chosen.update(same)
    return chosen


def _register_in_job(
    run: Run, name: str, files: Mapping[str, Path], description: str, tags: Mapping[str, Any]
) -> int:
    """A job's token registers files of its run, so they become that."""
    folder = f"{MODELS}/{name}-{uuid.uuid4().hex[:8]}"
    for path, file in files.items():
        with file.open("rb") as content:
            run._put(f"{folder}/{path}", content)
    # One file alone keeps its name; of a folder the paths begin below it.
    source = f"{folder}/{next(iter(files))}" if FOLDER not in tags else folder
    answer = run._calls().register(name, run.id, f"runs:/{run.id}/{source}", description, tags)
    return int(answer["version"])
