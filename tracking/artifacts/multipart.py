"""MLflow's multipart uploads: the client requests a URL for each part, sends the parts in parallel, and
completes the upload.

Requests with parts carry no API token: a header holds a secret that is valid for this upload only.
"""

from __future__ import annotations

from pathlib import PurePosixPath

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tracking.artifacts import body_writer, file_owners, paths, uploads
from tracking.artifacts.body_writer import with_disk_errors
from tracking.callers import Caller
from tracking.mlflow.protocol.errors import INVALID, MISSING, MlflowError
from tracking.mlflow.protocol.fields import CallArgs
from tracking.mlflow.protocol.http import (
    handler_for,
    json_body,
    json_response,
    mlflow_errors,
    require_caller,
)
from trainhub_launch.json_types import JsonObject
from workspaces.http.requests import hub_url
from workspaces.http.threads import in_thread
from workspaces.states import Role

HEADER = "X-TrainHub-Upload"
# Limit of the JSON body that lists a file's parts with their URLs.
MAX_COMPLETE_BYTES = 16 * 1024 * 1024
_MPU = "/api/2.0/mlflow-artifacts/mpu"


@mlflow_errors
async def create_upload(request: Request) -> Response:
    """POST mpu/create/<folder> {path, num_parts} -> {upload_id, credentials: [{url, part_number,
    headers}]}."""
    caller = await require_caller(request, Role.CONTRIBUTOR)
    args = {**await json_body(request), "folder": request.path_params["folder"]}
    started = await in_thread(_begin, caller, args)
    part_url = f"{hub_url(request)}{_MPU}/parts/{started.upload.id}"
    return json_response(
        {
            "upload_id": started.upload.id,
            "credentials": [
                {"url": f"{part_url}/{number}", "part_number": number, "headers": {HEADER: started.secret}}
                for number in range(1, started.upload.parts + 1)
            ],
        }
    )


@mlflow_errors
async def upload_part(request: Request) -> Response:
    """PUT mpu/parts/<upload>/<number>; clients may repeat a part."""
    parameters = request.path_params
    secret = request.headers.get(HEADER, "")
    # These functions use files only and no database, so they need not manage a connection.
    upload = await anyio.to_thread.run_sync(
        uploads.authorize_part, parameters["upload"], parameters["number"], secret
    )
    max_bytes = await anyio.to_thread.run_sync(uploads.max_part_bytes, upload, parameters["number"])
    body_writer.check_size(request, max_bytes)
    writer = await anyio.to_thread.run_sync(
        with_disk_errors, lambda: uploads.PartWriter(upload, parameters["number"])
    )
    try:
        await body_writer.write_body(request, writer.write, max_bytes)
        etag = await anyio.to_thread.run_sync(with_disk_errors, writer.finish)
    finally:
        await anyio.to_thread.run_sync(writer.close)
    return Response(headers={"ETag": f'"{etag}"'})


@mlflow_errors
async def complete_upload(request: Request) -> Response:
    """POST mpu/complete/<folder> {path, upload_id, parts: [{part_number, etag}]}. A repeated call has no
    effect."""
    caller = await require_caller(request, Role.CONTRIBUTOR)
    args = {**await json_body(request, MAX_COMPLETE_BYTES), "folder": request.path_params["folder"]}
    await in_thread(_complete, caller, args)
    return json_response(None)


def abort_upload(caller: Caller, args: CallArgs) -> None:
    """POST mpu/abort/<folder> {path, upload_id}."""
    address = _target(args)
    place = file_owners.writable_owner(caller, address)
    uploads.delete_upload(uploads.find_upload(_text(args, "upload_id"), f"{place.root}/{address.path}"))


def _complete(caller: Caller, args: CallArgs) -> None:
    address = _target(args)
    place = file_owners.writable_owner(caller, address)
    upload = uploads.find_upload(_text(args, "upload_id"), f"{place.root}/{address.path}")
    if uploads.is_done(upload):
        return
    try:
        uploads.check_parts(upload, _parts(args))
        file_owners.check_room(caller, place, uploads.bytes_of_parts(upload))
        received = with_disk_errors(lambda: uploads.join_parts(upload))
    except (FileNotFoundError, MlflowError) as error:
        if uploads.is_done(upload):
            return  # a concurrent call completed it first
        if isinstance(error, MlflowError):
            raise
        raise MlflowError(MISSING, "upload_id: this upload was aborted; start it again.") from error
    # The file before the marker: after a crash in between, the client repeats the call and the parts still
    # exist.
    file_owners.put_file(place, address.path, received.sha256, received.size_bytes)
    uploads.mark_done(upload)


def _begin(caller: Caller, args: CallArgs) -> uploads.StartedUpload:
    address = _target(args)
    place = file_owners.writable_owner(caller, address)
    file_owners.check_room(caller, place)
    count = args.get("num_parts", 1)
    if not isinstance(count, int | str) or not str(count).isdecimal() or len(str(count)) > 9:
        raise MlflowError(INVALID, "num_parts: must be a whole number.")
    return uploads.start_upload(f"{place.root}/{address.path}", int(count))


def _target(args: CallArgs) -> paths.Address:
    """Returns the address of the file: the folder in the URL, and the file name of the client's path."""
    # Clients send the path on their own disk, on Windows with backslashes.
    name = PurePosixPath(_text(args, "path").replace("\\", "/")).name
    if not name:
        raise MlflowError(INVALID, "path: name the file.")
    return paths.parse_address(f"{args['folder'].rstrip('/')}/{name}")


def _parts(args: CallArgs) -> list[JsonObject]:
    content = args.get("parts")
    if not isinstance(content, list) or not all(isinstance(item, dict) for item in content):
        raise MlflowError(INVALID, "parts: give a list of {part_number, etag}.")
    return [{**item, "part_number": _number(item.get("part_number"))} for item in content]


def _number(content: object) -> int:
    if isinstance(content, int | str) and str(content).isdecimal() and len(str(content)) < 10:
        return int(content)
    raise MlflowError(INVALID, "parts: part_number must be a whole number.")


def _text(args: CallArgs, name: str) -> str:
    value = args.get(name)
    if not isinstance(value, str) or not value:
        raise MlflowError(INVALID, f"{name}: is required, as text.")
    return value


routes = [
    Route(f"{_MPU}/create/{{folder:artifact_path}}", create_upload, methods=["POST"]),
    Route(f"{_MPU}/complete/{{folder:artifact_path}}", complete_upload, methods=["POST"]),
    Route(
        f"{_MPU}/abort/{{folder:artifact_path}}",
        handler_for(abort_upload, role=Role.CONTRIBUTOR),
        methods=["POST"],
    ),
    Route(f"{_MPU}/parts/{{upload:str}}/{{number:int}}", upload_part, methods=["PUT"]),
]
