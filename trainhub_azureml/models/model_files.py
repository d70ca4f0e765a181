"""The files of a version on this machine: downloads, and the folder in which `Model.get_model_path` keeps
what it has fetched."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainhub_azureml.exceptions import UserErrorException
from trainhub_azureml.models.version_tags import FOLDER
from trainhub_sdk.models import ModelVersion
from trainhub_sdk.transfers import file_sha256

CACHE, CACHE_VARIABLE = "azureml-models", "AZUREML_MODEL_DIR"


def folder_name(content: ModelVersion, tags: Mapping[str, Any]) -> str:
    """Returns the name of the folder that was registered, "" if it was a file or is not known."""
    if tags.get(FOLDER):
        return str(tags[FOLDER])
    run, _, path = content.source.partition("runs:/")[2].partition("/")
    name = path.rstrip("/").rpartition("/")[2]
    is_file = [file.path for file in content.files] == [name]
    return "" if not run or is_file else name


def model_path(content: ModelVersion, folder: str) -> str:
    """Returns the path of the only file of a version in a folder, or the folder, as the SDK v1 names it."""
    paths = [file.path for file in content.files]
    return os.path.join(folder, paths[0]) if len(paths) == 1 and "/" not in paths[0] else folder


def download_version(content: ModelVersion, name: str, target: str, *, may_replace: bool) -> str:
    """Downloads a version into the folder `target`, below the folder `name` if it is not empty. Returns the
    path of the model. Raises UserErrorException if a file is there already, unless `may_replace`."""
    folder = os.path.join(target, name)
    present = [file.path for file in content.files if os.path.exists(os.path.join(folder, file.path))]
    if present and not may_replace:
        raise UserErrorException(f"Model.download: {folder} has {present[0]} already; give exist_ok=True.")
    content.download(folder)
    return folder if name else model_path(content, folder)


def cached_version(content: ModelVersion, name: str) -> str:
    """Fetches what is missing of a version into the cache, below the folder `name` if it is not empty.
    Returns the path of the model."""
    folder = _cache() / content.model / str(content.version) / name
    path = str(folder) if name else model_path(content, str(folder))
    missing = [one for one in content.files if not _is_same(folder / one.path, one.sha256)]
    if missing:
        _cache().mkdir(parents=True, exist_ok=True)
        # Several processes of a job may do this at once: each file appears when it is complete.
        with tempfile.TemporaryDirectory(prefix=".", dir=_cache()) as temporary:
            content.files = missing
            for file in content.download(temporary):
                target = folder / file.relative_to(temporary)
                target.parent.mkdir(parents=True, exist_ok=True)
                file.replace(target)
    return path


def local_model_path(name: str, version: int | None) -> str | None:
    """Returns the path of a model that is on this machine: a version in the cache, by default the newest, or
    the file or folder `name` in the current one; None if there is none."""
    top = _cache() / name
    numbers = [int(path.name) for path in top.glob("*") if path.name.isdigit()]
    number = max(numbers, default=None) if version is None else version
    if number in numbers:
        entries = list((top / str(number)).iterdir())
        return str(entries[0] if len(entries) == 1 else top / str(number))
    return name if version is None and os.path.exists(name) else None


def _cache() -> Path:
    return Path(os.environ.get(CACHE_VARIABLE) or CACHE)


def _is_same(path: Path, sha256: str) -> bool:
    return path.is_file() and file_sha256(path) == sha256
