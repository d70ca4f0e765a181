"""Registers uploaded files as a version."""

from __future__ import annotations

from urllib.parse import quote

import anyio.to_thread
import orjson
from django.conf import settings
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from jobs.quotas import disk_quota
from registry.api.serializers import VersionSerializer
from registry.errors import RegistryError
from registry.model_metadata import checked_description
from registry.models import ModelVersion
from registry.registration import UPLOAD, Origin, Words, add_version, check_name
from registry.transfer.forms import FilesForm
from tracking.artifacts.body_writer import check_size, declared_size, write_body
from tracking.callers import Caller, caller_of
from tracking.mlflow.protocol.errors import MlflowError
from workspaces.http.problems import FieldProblem, Problem, problem_responses, unauthorized
from workspaces.http.threads import in_thread
from workspaces.states import Role


@problem_responses
async def take(request: Request) -> Response:
    """POST: uploads a form (multipart/form-data) as the next version of the model, which is created if it is
    new. The form has any number of parts named `files`, whose file names may contain folders, and an optional
    `description`. If the upload is interrupted or refused, nothing is kept."""
    who = await _uploader(request)
    try:
        name = check_name(request.path_params["name"])
        # Refuses by Content-Length before anything is read; `write_body` limits a body without that header.
        check_size(request, settings.MAX_UPLOAD_BYTES)
        size_bytes = declared_size(request)
        await in_thread(_check_room, who, size_bytes or 0)
        version = await _receive(request, who, name, is_counted=size_bytes is not None)
    except RegistryError as error:
        raise FieldProblem(400, "Bad request", error.field, error.message) from error
    except MlflowError as error:
        raise Problem(error.status, "Not taken", error.message) from error
    address = f"/models/{quote(name)}/versions/{version.number}/"
    # A browser that posts the page's form expects a page; scripts and curl get JSON.
    if "text/html" in request.headers.get("accept", ""):
        return RedirectResponse(address, 303)
    answer = await in_thread(_version_body, version)
    return Response(answer, 201, {"Location": address}, "application/json")


async def _uploader(request: Request) -> Caller:
    who = await caller_of(request.scope)
    if who is None:
        raise unauthorized("Sign in, or send a token: Authorization: Bearer TOKEN.")
    if not who.may(Role.CONTRIBUTOR):
        raise Problem(
            403, "Not allowed", f"Registering a model needs the role {Role.CONTRIBUTOR}. Ask an owner."
        )
    if who.job is not None:
        raise Problem(
            403, "Not allowed", "A job registers what it has logged or left in outputs/, not what it sends."
        )
    return who


def _check_room(who: Caller, size_bytes: int) -> None:
    """Raises RegistryError if a quota of disk leaves no room."""
    try:
        disk_quota.check_room(who.workspace, who.user, size_bytes, field="files")
    except disk_quota.DiskQuotaExceeded as error:
        raise RegistryError(error.field, error.message) from error


async def _receive(request: Request, who: Caller, name: str, *, is_counted: bool) -> ModelVersion:
    form = FilesForm(request.headers.get("content-type", ""))
    try:
        await write_body(request, form.write, settings.MAX_UPLOAD_BYTES)
        await anyio.to_thread.run_sync(form.end)
        if not is_counted:
            await in_thread(_check_room, who, sum(file.size_bytes for file in form.files))
        words = Words(checked_description(form.fields.get("description", "")))
        return await in_thread(
            add_version, who.workspace, name, Origin(UPLOAD, tuple(form.files)), who.user, words
        )
    except BaseException:
        # A request that is cancelled must not leave its blobs behind either, so this is not `Exception`.
        await in_thread(form.drop)
        raise


def _version_body(version: ModelVersion) -> bytes:
    return orjson.dumps(dict(VersionSerializer(version).data), default=str)
