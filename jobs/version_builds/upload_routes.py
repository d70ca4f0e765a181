"""The raw routes by which a node brings to the hub what it has made: one request per file, and then the
result, which locks the version. And the one by which it gets the login of a registry for that."""

from __future__ import annotations

import json
import shutil
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Sum
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from environments import made_versions
from environments.dockerfiles.builder_login import builder_login
from environments.errors import Unresolvable
from environments.images.registry_error import RegistryError
from environments.kinds.all_kinds import maker_of
from environments.models import EnvironmentVersion
from jobs.models import BuildFile, EnvironmentBuild
from jobs.node_orders.received_file import content_length, receive_file
from jobs.quotas import disk_quota
from jobs.version_builds.tickets import is_ticket_of_build, open_build
from trainhub_launch.scheduler.capabilities import installed_glibc
from workspaces.http.problems import FieldProblem, Problem, problem_responses
from workspaces.http.requests import read_body
from workspaces.http.threads import in_thread
from workspaces.stored_files import blobs
from workspaces.stored_files.blob_writer import BlobWriter
from workspaces.stored_files.conditional_response import PRIVATE

MAX_RESULT_BYTES = 1024 * 1024


@problem_responses
async def has_build_file(request: Request) -> Response:
    """HEAD: 200 if the node need not upload the file, 404 if it must."""
    build, sha256 = await _build(request), _sha256(request)
    is_there = await in_thread(_is_there, build, sha256)
    return Response(status_code=200 if is_there else 404, headers=PRIVATE)


@problem_responses
async def put_build_file(request: Request) -> Response:
    """PUT: stores a file of the build. Its bytes must have the SHA-256 in the address."""
    build, sha256 = await _build(request), _sha256(request)
    size = content_length(request)
    try:
        await in_thread(_check_room, build, size)
    except Problem:
        # Read to its end: a client that is still sending would not see the answer.
        async for _ in request.stream():
            pass
        raise
    writer = await in_thread(BlobWriter)
    try:
        await receive_file(request, writer, size)
        await in_thread(_finish, build, writer, sha256)
    except blobs.BlobError as error:
        raise Problem(422, "Wrong content", f"{error}. Send the file again.") from error
    except OSError as error:
        if error.errno in blobs.DISK_FULL:
            raise _disk_full() from error
        raise
    finally:
        writer.__exit__(None, None, None)
    return Response(status_code=201, headers=PRIVATE)


@problem_responses
async def registry_login(request: Request) -> Response:
    """GET: the login with which the node pulls the images that the Dockerfile of the build names."""
    build = await _build(request)
    return JSONResponse(await in_thread(_login, build), headers=PRIVATE)


@problem_responses
async def accept_build_result(request: Request) -> Response:
    """POST: the result of the build, a JSON object. Locks the version, or answers 422 with a sentence."""
    build = await _build(request)
    try:
        result = json.loads(await read_body(request, MAX_RESULT_BYTES))
    except (ValueError, RecursionError) as error:
        raise Problem(400, "Bad request", "The result must be a JSON object.") from error
    if not isinstance(result, dict):
        raise Problem(400, "Bad request", "The result must be a JSON object.")
    await in_thread(_accept, build, result)
    return JSONResponse({"state": "locked"}, headers=PRIVATE)


async def _build(request: Request) -> EnvironmentBuild:
    build_id = request.path_params["build"]
    if not is_ticket_of_build(request.headers.get("authorization", ""), build_id):
        raise Problem(401, "Not signed in", "The ticket of this build is needed.", WWW_Authenticate="Bearer")
    build = await in_thread(open_build, build_id)
    if build is None:
        raise Problem(403, "Over", "This build is over, and with it its ticket.")
    return build


def _sha256(request: Request) -> str:
    sha256: str = request.path_params["sha256"]
    if not blobs.SHA256.match(sha256):
        raise Problem(
            400, "Bad request", "The address ends with the SHA-256 of the file in lower-case hex digits."
        )
    return sha256


def _version(build: EnvironmentBuild) -> EnvironmentVersion:
    if build.own_version is None:
        raise Problem(403, "Over", "The environment of this build was deleted.")
    return build.own_version


def _is_there(build: EnvironmentBuild, sha256: str) -> bool:
    is_uploaded = build.files.filter(sha256=sha256).exists() and blobs.hold(sha256)
    return is_uploaded or maker_of(_version(build)).has_file(_version(build), sha256)


def _check_room(build: EnvironmentBuild, size: int) -> None:
    version = _version(build)
    used = build.files.aggregate(sum=Sum("size_bytes"))["sum"] or 0
    if used + size > settings.MAX_ENVIRONMENT_BUILD_BYTES:
        raise Problem(
            413,
            "Too large",
            f"What is built may have at most {settings.MAX_ENVIRONMENT_BUILD_BYTES:,} bytes "
            "(MAX_ENVIRONMENT_BUILD_BYTES). Make it smaller, or ask an operator to raise that.",
        )
    try:
        if build.workspace is not None:
            disk_quota.check_room(build.workspace, version.created_by, size, field="file")
    except disk_quota.DiskQuotaExceeded as error:
        raise FieldProblem(403, "Not allowed", error.field, error.message) from error
    if shutil.disk_usage(settings.DATA_DIR).free < size:
        raise _disk_full()


def _finish(build: EnvironmentBuild, writer: BlobWriter, sha256: str) -> None:
    writer.finish(sha256)
    # Not for a build that has ended meanwhile: its rows are gone, and nothing would delete this one.
    with transaction.atomic():
        builds = EnvironmentBuild.objects.select_for_update(of=("self",))
        if builds.filter(pk=build.pk, ended_at=None).exists():
            BuildFile.objects.get_or_create(build=build, sha256=sha256, defaults={"size_bytes": writer.size})


def _login(build: EnvironmentBuild) -> dict[str, str]:
    try:
        login = builder_login(_version(build), build.node.name)
    except RegistryError as error:
        raise Problem(422, "No login", str(error)) from error
    if login is None:
        raise Problem(404, "Not found", "The Dockerfile of this build names no login of a registry.")
    return login


def _accept(build: EnvironmentBuild, result: dict[str, Any]) -> None:
    if _version(build).is_locked:
        # By this build: no other one is open. Its node has not got the answer, and asks again.
        return
    files = dict(build.files.values_list("sha256", "size_bytes"))
    # What the hub itself knows, whatever the node says.
    glibc = installed_glibc(build.node.capabilities.split())
    result |= {"build": build.pk, "node": build.node.name, "glibc": glibc}
    try:
        with transaction.atomic():
            made_versions.lock_with_result(_version(build), result, files)
    except Unresolvable as error:
        raise Problem(422, "Not accepted", str(error)) from error


def _disk_full() -> Problem:
    return Problem(507, "Disk full", "The hub's disk is full. An operator frees space below DATA_DIR.")
