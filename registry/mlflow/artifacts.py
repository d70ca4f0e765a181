"""A version's files by MLflow's artifact protocol, to read:
`mlflow-artifacts:/models/<name>/<version>/<path>`."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response

from registry.certificates.issuance import documents
from registry.lookup import find_model_file, version_of
from registry.mlflow import deferred_files
from registry.models import ModelFile, ModelVersion, ReferencedFile
from registry.transfer.file_responses import certificate_file, model_file
from tracking.artifacts import paths, protocol
from tracking.artifacts.file_responses import mlflow_type
from tracking.callers import Caller
from tracking.mlflow.protocol.errors import INVALID, MISSING, MlflowError
from tracking.mlflow.protocol.fields import CallArgs
from tracking.mlflow.protocol.http import mlflow_errors, require_caller
from workspaces.http.threads import in_thread
from workspaces.stored_files import blobs

ROOT = "models/"
JsonObject = dict[str, Any]


def list_artifacts(who: Caller, args: CallArgs) -> JsonObject:
    """GET …/mlflow-artifacts/artifacts?path=: lists a folder of a version, or of a run or logged model."""
    path = args.get("path")
    if not isinstance(path, str) or not path.startswith(ROOT):
        return protocol.list_artifacts(who, args)
    version, inside = _version(who, path.removeprefix(ROOT))
    start = f"{inside}/" if inside else ""
    folders: set[str] = set()
    files: list[JsonObject] = []
    for name, size in _sizes(version, inside):
        if name.startswith(start):
            head, slash, _ = name.removeprefix(start).partition("/")
            if slash:
                folders.add(head)
            else:
                files.append({"path": head, "is_dir": False, "file_size": size})
    files += [{"path": name, "is_dir": True} for name in folders]
    return {"files": sorted(files, key=lambda item: str(item["path"]))}


@mlflow_errors
async def fetch(request: Request) -> Response:
    """GET …/mlflow-artifacts/artifacts/models/<name>/<version>/<path>."""
    who = await require_caller(request)
    file = await in_thread(_locate, who, request.path_params["path"])
    return (
        certificate_file(*file)
        if isinstance(file, tuple)
        else model_file(file, who.user, media_type=mlflow_type(file.path))
    )


@mlflow_errors
async def refuse(request: Request) -> Response:
    await require_caller(request)
    raise MlflowError(
        INVALID, "path: the files of a registered version do not change; register a new version instead."
    )


def _locate(who: Caller, path: str) -> ModelFile | ReferencedFile | tuple[str, bytes]:
    version, inside = _version(who, path)
    file = find_model_file(version, inside)
    if file is None:
        # Clients list the certificate's files beside the version's own (`_sizes`), and fetch them in the same
        # way.
        if data := documents(version).get(inside):
            return inside, data
        raise MlflowError(MISSING, f"No such artifact: '{inside}'")
    if isinstance(file, ModelFile) and not blobs.exists(file.sha256):
        raise MlflowError(MISSING, f"The bytes of '{inside}' {blobs.absence(file.sha256)}.")
    return file


def _version(who: Caller, path: str) -> tuple[ModelVersion, str]:
    """Returns the version and the path inside it for `<name>/<version>/<path>`, in which the name may be
    quoted."""
    name, _, rest = path.rstrip("/").partition("/")
    number, _, inside = rest.partition("/")
    version = version_of(who.workspace, unquote(name), number) if number.isdecimal() else None
    if version is None:
        raise MlflowError(
            MISSING, f"There is no version '{number[:20]}' of a model '{unquote(name)[:200]}' here."
        )
    # The task that fills such a version may not have run yet.
    if not version.certificate:
        deferred_files.fill(version)
    return version, paths.folder_path(inside)


def _sizes(version: ModelVersion, inside: str) -> list[tuple[str, int]]:
    sizes = [(file.path, file.size_bytes) for file in version.all_files]
    return sizes if inside else [*sizes, *((name, len(data)) for name, data in documents(version).items())]
