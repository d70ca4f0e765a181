"""MLflow's artifact protocol: list, fetch, store and delete files of runs and logged models
(docs/artifacts.md)."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tracking.artifacts import body_writer, file_owners, paths
from tracking.artifacts.file_owners import Place
from tracking.artifacts.file_responses import download, mlflow_type
from tracking.artifacts.folders import listing
from tracking.callers import Caller
from tracking.mlflow.protocol.errors import INVALID, MISSING, MlflowError
from tracking.mlflow.protocol.http import CallArgs, handler_for, json_response, mlflow_errors, require_caller
from workspaces.http.threads import in_thread
from workspaces.states import Role


def listed(who: Caller, asked: CallArgs) -> dict[str, Any]:
    """GET …/mlflow-artifacts/artifacts?path=: names relative to the listed folder."""
    address = paths.address(_text(asked, "path"), is_folder=True)
    place = file_owners.find(who, address)
    return {"files": _files(place, address.path, under="")}


def listed_of_run(who: Caller, asked: CallArgs) -> dict[str, Any]:
    """GET …/mlflow/artifacts/list?run_id=&path=: paths relative to the run's artifacts."""
    place = file_owners.of_run(who, _text(asked, "run_id") or _text(asked, "run_uuid"))
    return _listed_below(place, paths.folder(_text(asked, "path")))


def listed_of_model(who: Caller, asked: CallArgs) -> dict[str, Any]:
    """GET …/mlflow/logged-models/<id>/artifacts/directories?artifact_directory_path=."""
    place = file_owners.of_model(who, _text(asked, "model_id"))
    return _listed_below(place, paths.folder(_text(asked, "artifact_directory_path")))


def deleted(who: Caller, asked: CallArgs) -> None:
    """DELETE …/mlflow-artifacts/artifacts/<path>: a file, or a folder with all that is in it."""
    address = paths.address(_text(asked, "path"), is_folder=True)
    place = file_owners.writable(who, address)
    if not file_owners.remove(place, address.path) and address.path:
        raise MlflowError(MISSING, f"No such artifact: '{address.path}'")


@mlflow_errors
async def fetch(request: Request) -> Response:
    """GET, HEAD …/mlflow-artifacts/artifacts/<path>."""
    who = await require_caller(request)
    address = paths.address(request.path_params["path"])
    row = await in_thread(_found, who, address)
    return download(row, media_type=mlflow_type(row.path))


@mlflow_errors
async def fetch_of_run(request: Request) -> Response:
    """GET /get-artifact?run_uuid=&path=."""
    who = await require_caller(request)
    asked = request.query_params
    path = paths.checked(asked.get("path", ""))
    row = await in_thread(_found_of_run, who, asked.get("run_id") or asked.get("run_uuid") or "", path)
    return download(row, media_type=mlflow_type(row.path))


@mlflow_errors
async def store(request: Request) -> Response:
    """PUT …/mlflow-artifacts/artifacts/<path>: who, where and how much is known before a byte of the body is
    read."""
    who = await require_caller(request, Role.CONTRIBUTOR)
    address = paths.address(request.path_params["path"])
    place = await in_thread(file_owners.writable, who, address)
    return await _stored(request, place, address.path)


@mlflow_errors
async def store_of_run(request: Request) -> Response:
    """POST /ajax-api/2.0/mlflow/upload-artifact?run_uuid=&path=."""
    who = await require_caller(request, Role.CONTRIBUTOR)
    asked = request.query_params
    path = paths.checked(asked.get("path", ""))
    place = await in_thread(file_owners.writable_run, who, asked.get("run_uuid") or asked.get("run_id") or "")
    return await _stored(request, place, path)


async def _stored(request: Request, place: Place, path: str) -> Response:
    received = await body_writer.into_blob(request)
    await in_thread(file_owners.put, place, path, received.sha256, received.size_bytes)
    return json_response(None)


def _files(place: Place, path: str, *, under: str) -> list[dict[str, Any]]:
    found = listing(place.rows, path)
    folders = [{"path": f"{under}{item.name}", "is_dir": True} for item in found.folders]
    files = [
        {"path": f"{under}{PurePosixPath(item.path).name}", "is_dir": False, "file_size": item.size_bytes}
        for item in found.files
    ]
    return sorted((*folders, *files), key=lambda item: str(item["path"]))


def _listed_below(place: Place, path: str) -> dict[str, Any]:
    return {
        "root_uri": f"mlflow-artifacts:/{place.root}",
        "files": _files(place, path, under=f"{path}/" if path else ""),
    }


def _found(who: Caller, address: paths.Address) -> file_owners.Row:
    return file_owners.row_at(file_owners.find(who, address), address.path)


def _found_of_run(who: Caller, run_id: str, path: str) -> file_owners.Row:
    return file_owners.row_at(file_owners.of_run(who, run_id), path)


def _text(asked: CallArgs, name: str) -> str:
    value = asked.get(name, "")
    if not isinstance(value, str):
        raise MlflowError(INVALID, f"{name}: give it once, as text.")
    return value


_ARTIFACTS = "/api/2.0/mlflow-artifacts/artifacts"
routes = [
    Route(_ARTIFACTS, handler_for(listed), methods=["GET"]),
    Route(f"{_ARTIFACTS}/{{path:told}}", fetch, methods=["GET", "HEAD"]),
    Route(f"{_ARTIFACTS}/{{path:told}}", store, methods=["PUT"]),
    Route(f"{_ARTIFACTS}/{{path:told}}", handler_for(deleted, role=Role.CONTRIBUTOR), methods=["DELETE"]),
    Route("/get-artifact", fetch_of_run, methods=["GET", "HEAD"]),
    Route("/ajax-api/2.0/mlflow/upload-artifact", store_of_run, methods=["POST"]),
    Route("/api/2.0/mlflow/artifacts/list", handler_for(listed_of_run), methods=["GET"]),
    Route(
        "/api/2.0/mlflow/logged-models/{model_id:str}/artifacts/directories",
        handler_for(listed_of_model),
        methods=["GET"],
    ),
]
