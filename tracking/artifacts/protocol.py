"""MLflow's artifact protocol: list, fetch, store and delete files of runs and logged models
(docs/artifacts.md)."""

from __future__ import annotations

from pathlib import PurePosixPath

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tracking.artifacts import body_writer, file_owners, paths
from tracking.artifacts.file_owners import FileOwner
from tracking.artifacts.file_responses import download, mlflow_type
from tracking.artifacts.folders import list_folder
from tracking.callers import Caller
from tracking.mlflow.protocol.errors import INVALID, MISSING, MlflowError
from tracking.mlflow.protocol.fields import CallArgs
from tracking.mlflow.protocol.http import handler_for, json_response, mlflow_errors, require_caller
from workspaces.http.threads import in_thread
from workspaces.states import Role


def list_artifacts(caller: Caller, args: CallArgs) -> dict[str, object]:
    """GET …/mlflow-artifacts/artifacts?path=: names relative to the listed folder."""
    address = paths.parse_address(_text(args, "path"), is_folder=True)
    place = file_owners.find_owner(caller, address)
    return {"files": _files(place, address.path, under="")}


def list_run_artifacts(caller: Caller, args: CallArgs) -> dict[str, object]:
    """GET …/mlflow/artifacts/list?run_id=&path=: paths relative to the run's artifacts."""
    place = file_owners.run_files(caller, _text(args, "run_id") or _text(args, "run_uuid"))
    return _list_below(place, paths.folder_path(_text(args, "path")))


def list_model_artifacts(caller: Caller, args: CallArgs) -> dict[str, object]:
    """GET …/mlflow/logged-models/<id>/artifacts/directories?artifact_directory_path=."""
    place = file_owners.model_files(caller, _text(args, "model_id"))
    return _list_below(place, paths.folder_path(_text(args, "artifact_directory_path")))


def delete_artifacts(caller: Caller, args: CallArgs) -> None:
    """DELETE …/mlflow-artifacts/artifacts/<path>: a file, or a folder with its content."""
    address = paths.parse_address(_text(args, "path"), is_folder=True)
    place = file_owners.writable_owner(caller, address)
    if not file_owners.remove(place, address.path) and address.path:
        raise MlflowError(MISSING, f"No such artifact: '{address.path}'")


@mlflow_errors
async def fetch(request: Request) -> Response:
    """GET, HEAD …/mlflow-artifacts/artifacts/<path>."""
    caller = await require_caller(request)
    address = paths.parse_address(request.path_params["path"])
    row = await in_thread(_find_row, caller, address)
    return download(row, caller.user, media_type=mlflow_type(row.path))


@mlflow_errors
async def fetch_from_run(request: Request) -> Response:
    """GET /get-artifact?run_uuid=&path=."""
    caller = await require_caller(request)
    args = request.query_params
    path = paths.check_path(args.get("path", ""))
    row = await in_thread(_find_run_row, caller, args.get("run_id") or args.get("run_uuid") or "", path)
    return download(row, caller.user, media_type=mlflow_type(row.path))


@mlflow_errors
async def store(request: Request) -> Response:
    """PUT …/mlflow-artifacts/artifacts/<path>. Permission, path and size are checked before the body is
    read."""
    caller = await require_caller(request, Role.CONTRIBUTOR)
    address = paths.parse_address(request.path_params["path"])
    place = await in_thread(file_owners.writable_owner, caller, address)
    return await _store_body(request, caller, place, address.path)


@mlflow_errors
async def store_to_run(request: Request) -> Response:
    """POST /ajax-api/2.0/mlflow/upload-artifact?run_uuid=&path=."""
    caller = await require_caller(request, Role.CONTRIBUTOR)
    args = request.query_params
    path = paths.check_path(args.get("path", ""))
    place = await in_thread(
        file_owners.writable_run_files, caller, args.get("run_uuid") or args.get("run_id") or ""
    )
    return await _store_body(request, caller, place, path)


async def _store_body(request: Request, caller: Caller, place: FileOwner, path: str) -> Response:
    size_bytes = body_writer.declared_size(request)
    await in_thread(file_owners.check_room, caller, place, size_bytes or 0)
    received = await body_writer.store_body(request)
    if size_bytes is None:
        await in_thread(file_owners.check_room, caller, place, received.size_bytes)
    await in_thread(file_owners.put_file, place, path, received.sha256, received.size_bytes)
    return json_response(None)


def _files(place: FileOwner, path: str, *, under: str) -> list[dict[str, object]]:
    folder = list_folder(place, path)
    folders = [{"path": f"{under}{item.name}", "is_dir": True} for item in folder.folders]
    files = [
        {"path": f"{under}{PurePosixPath(item.path).name}", "is_dir": False, "file_size": item.size_bytes}
        for item in folder.files
    ]
    return sorted((*folders, *files), key=lambda item: str(item["path"]))


def _list_below(place: FileOwner, path: str) -> dict[str, object]:
    return {
        "root_uri": f"mlflow-artifacts:/{place.root}",
        "files": _files(place, path, under=f"{path}/" if path else ""),
    }


def _find_row(caller: Caller, address: paths.Address) -> file_owners.ListedFile:
    return file_owners.find_file(file_owners.find_owner(caller, address), address.path)


def _find_run_row(caller: Caller, run_id: str, path: str) -> file_owners.ListedFile:
    return file_owners.find_file(file_owners.run_files(caller, run_id), path)


def _text(args: CallArgs, name: str) -> str:
    value = args.get(name, "")
    if not isinstance(value, str):
        raise MlflowError(INVALID, f"{name}: give it once, as text.")
    return value


_ARTIFACTS = "/api/2.0/mlflow-artifacts/artifacts"
routes = [
    Route(_ARTIFACTS, handler_for(list_artifacts), methods=["GET"]),
    Route(f"{_ARTIFACTS}/{{path:artifact_path}}", fetch, methods=["GET", "HEAD"]),
    Route(f"{_ARTIFACTS}/{{path:artifact_path}}", store, methods=["PUT"]),
    Route(
        f"{_ARTIFACTS}/{{path:artifact_path}}",
        handler_for(delete_artifacts, role=Role.CONTRIBUTOR),
        methods=["DELETE"],
    ),
    Route("/get-artifact", fetch_from_run, methods=["GET", "HEAD"]),
    Route("/ajax-api/2.0/mlflow/upload-artifact", store_to_run, methods=["POST"]),
    Route("/api/2.0/mlflow/artifacts/list", handler_for(list_run_artifacts), methods=["GET"]),
    Route(
        "/api/2.0/mlflow/logged-models/{model_id:str}/artifacts/directories",
        handler_for(list_model_artifacts),
        methods=["GET"],
    ),
]
