"""Downloads of model files, past Django: streamed, with Range."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import PurePosixPath

from channels.db import database_sync_to_async
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from registry.lookup import version_of
from registry.models import ModelFile
from tracking.callers import caller_of
from workspaces import blobs
from workspaces.models import Workspace

# The bytes come from somebody's training job: no browser may take them for a page of ours.
SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cache-Control": "private, no-cache",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Download(FileResponse):
    # Starlette's 64 KiB cost a thread switch each.
    chunk_size = 1024 * 1024


async def model_file(request: Request) -> Response:
    """One file of a version; `version` in the address is a number or an alias."""
    caller = await caller_of(request.scope)
    if caller is None:
        return _problem(401, "Sign in, or send a token: Authorization: Bearer TOKEN.", **{"WWW-Authenticate": "Bearer"})
    parts = request.path_params
    file = await database_sync_to_async(_find)(caller.workspace, parts["name"], parts["version"], parts["path"])
    if file is None:
        return _problem(404, "There is no such model, version or file, or none that you may see.")
    path = blobs.path(file.sha256)
    if not path.is_file():
        return _problem(404, f"The bytes of {file.path} are missing on the hub; restore its data folder from a backup.")
    return Download(
        path, media_type="application/octet-stream", filename=PurePosixPath(file.path).name,
        headers={**SAFE, "ETag": f'"{file.sha256}"', "X-Content-SHA256": file.sha256},
    )


def _find(workspace: Workspace, name: str, version: str, path: str) -> ModelFile | None:
    found = version_of(workspace, name, version)
    return None if found is None else found.files.filter(path=path).first()


def _problem(status: int, detail: str, **headers: str) -> Response:
    return JSONResponse(
        {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail},
        status_code=status, headers=headers, media_type="application/problem+json",
    )


routes = [Route("/api/v1/models/{name}/versions/{version}/files/{path:path}", model_file, methods=["GET", "HEAD"])]
