"""MLflow's multipart uploads: the client asks where each part goes, sends the parts side by side, and says
when all are there.

The parts come without the client's token: a secret of this upload alone goes with them, in a header.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tracking.artifacts import body_writer, file_owners, paths, uploads
from tracking.artifacts.body_writer import guarded
from tracking.callers import Caller
from tracking.mlflow.protocol.errors import INVALID, MISSING, MlflowError
from tracking.mlflow.protocol.http import (
    CallArgs,
    handler_for,
    json_body,
    json_response,
    mlflow_errors,
    require_caller,
)
from workspaces.http.requests import hub_url
from workspaces.http.threads import in_thread
from workspaces.states import Role

HEADER = "X-TrainHub-Upload"
MOST_TOLD_BYTES = 16 * 1024 * 1024
"""Of the list of a file's parts, each with its address."""
_MPU = "/api/2.0/mlflow-artifacts/mpu"


@mlflow_errors
async def create(request: Request) -> Response:
    """POST mpu/create/<folder> {path, num_parts} -> {upload_id, credentials: [{url, part_number,
    headers}]}."""
    who = await require_caller(request, Role.CONTRIBUTOR)
    asked = {**await json_body(request), "folder": request.path_params["folder"]}
    begun = await in_thread(_begun, who, asked)
    part_url = f"{hub_url(request)}{_MPU}/parts/{begun.upload.id}"
    return json_response(
        {
            "upload_id": begun.upload.id,
            "credentials": [
                {"url": f"{part_url}/{number}", "part_number": number, "headers": {HEADER: begun.secret}}
                for number in range(1, begun.upload.parts + 1)
            ],
        }
    )


@mlflow_errors
async def part(request: Request) -> Response:
    """PUT mpu/parts/<upload>/<number>: again where an earlier try was cut off."""
    parameters = request.path_params
    secret = request.headers.get(HEADER, "")
    upload = await anyio.to_thread.run_sync(
        uploads.opened, parameters["upload"], parameters["number"], secret
    )
    most = await anyio.to_thread.run_sync(uploads.room, upload, parameters["number"])
    body_writer.check_size(request, most)
    writer = await anyio.to_thread.run_sync(guarded, lambda: uploads.PartWriter(upload, parameters["number"]))
    try:
        await body_writer.pour(request, writer.write, most)
        etag = await anyio.to_thread.run_sync(guarded, writer.finish)
    finally:
        await anyio.to_thread.run_sync(writer.close)
    return Response(headers={"ETag": f'"{etag}"'})


@mlflow_errors
async def complete(request: Request) -> Response:
    """POST mpu/complete/<folder> {path, upload_id, parts: [{part_number, etag}]}. Told twice, it is done
    once."""
    who = await require_caller(request, Role.CONTRIBUTOR)
    asked = {**await json_body(request, MOST_TOLD_BYTES), "folder": request.path_params["folder"]}
    await in_thread(_complete, who, asked)
    return json_response(None)


def abort(who: Caller, asked: CallArgs) -> None:
    """POST mpu/abort/<folder> {path, upload_id}."""
    address = _target(asked)
    place = file_owners.writable(who, address)
    uploads.abort(uploads.find(_text(asked, "upload_id"), f"{place.root}/{address.path}"))


def _complete(who: Caller, asked: CallArgs) -> None:
    address = _target(asked)
    place = file_owners.writable(who, address)
    upload = uploads.find(_text(asked, "upload_id"), f"{place.root}/{address.path}")
    if uploads.is_done(upload):
        return
    try:
        uploads.check(upload, _parts(asked))
        received = guarded(lambda: uploads.join(upload))
    except (FileNotFoundError, MlflowError) as error:
        if uploads.is_done(upload):
            return  # told twice at once, and the other was the first
        if isinstance(error, MlflowError):
            raise
        raise MlflowError(MISSING, "upload_id: this upload was aborted meanwhile; begin it again.") from error
    file_owners.put(place, address.path, received.sha256, received.size_bytes)
    uploads.settle(upload)


def _begun(who: Caller, asked: CallArgs) -> uploads.Begun:
    address = _target(asked)
    place = file_owners.writable(who, address)
    count = asked.get("num_parts", 1)
    if not isinstance(count, int | str) or not str(count).isdecimal() or len(str(count)) > 9:
        raise MlflowError(INVALID, "num_parts: must be a whole number.")
    return uploads.begin(f"{place.root}/{address.path}", int(count))


def _target(asked: CallArgs) -> paths.Address:
    """The folder in the address, and below it the last part of the path that the file has at the client."""
    name = PurePosixPath(_text(asked, "path").replace("\\", "/")).name
    if not name:
        raise MlflowError(INVALID, "path: name the file.")
    return paths.address(f"{asked['folder'].rstrip('/')}/{name}")


def _parts(asked: CallArgs) -> list[dict[str, Any]]:
    told = asked.get("parts")
    if not isinstance(told, list) or not all(isinstance(item, dict) for item in told):
        raise MlflowError(INVALID, "parts: give a list of {part_number, etag}.")
    return [{**item, "part_number": _number(item.get("part_number"))} for item in told]


def _number(told: Any) -> int:
    if isinstance(told, int | str) and str(told).isdecimal() and len(str(told)) < 10:
        return int(told)
    raise MlflowError(INVALID, "parts: part_number must be a whole number.")


def _text(asked: CallArgs, name: str) -> str:
    value = asked.get(name)
    if not isinstance(value, str) or not value:
        raise MlflowError(INVALID, f"{name}: is required, as text.")
    return value


routes = [
    Route(f"{_MPU}/create/{{folder:told}}", create, methods=["POST"]),
    Route(f"{_MPU}/complete/{{folder:told}}", complete, methods=["POST"]),
    Route(f"{_MPU}/abort/{{folder:told}}", handler_for(abort, role=Role.CONTRIBUTOR), methods=["POST"]),
    Route(f"{_MPU}/parts/{{upload:str}}/{{number:int}}", part, methods=["PUT"]),
]
