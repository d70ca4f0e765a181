"""The routes by which nodes announce checkpoints, deliver them, and fetch those from which an attempt goes
on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from jobs.checkpoints import collecting
from jobs.checkpoints.collecting import Announced, DeliveredFile
from jobs.models import AttemptNode, CheckpointFile
from jobs.node_api.auth import require_node
from jobs.transfer.claimed_parts import claimed_part
from trainhub_launch.order import MAX_CHECKPOINT_NAME
from trainhub_launch.states import CheckpointSign
from workspaces.http.problems import Problem, not_found, problem_responses
from workspaces.http.requests import read_body
from workspaces.http.threads import in_thread
from workspaces.stored_files import blobs
from workspaces.stored_files.conditional_response import PRIVATE
from workspaces.stored_files.responses import StoredFileResponse

ADDRESS = "/api/v1/node/checkpoints/{run:str}/{attempt:int}"
# Ten thousand files with long paths.
MAX_BODY_BYTES = 16 * 1024 * 1024
MAX_ENTRIES = 8
MAX_NAMES = 1000
MAX_SENTENCE = 500
VERSION = re.compile(r"[0-9a-f]{1,64}\Z")

_T = TypeVar("_T")


@problem_responses
async def announce(request: Request) -> Response:
    """Takes up what a node has, and returns the numbers of what it is to deliver."""
    node = await require_node(request)
    part = await in_thread(claimed_part, node, request.path_params)
    entries, names = await _body(request, _announcement)
    numbers = await in_thread(collecting.announce, part, entries, names)
    return JSONResponse({"numbers": numbers})


@problem_responses
async def deliver(request: Request) -> Response:
    """Stores which files are a node's part of a checkpoint."""
    node = await require_node(request)
    part = await in_thread(claimed_part, node, request.path_params)
    files, torn = await _body(request, _delivery)
    try:
        await in_thread(collecting.deliver, part, request.path_params["number"], files, torn)
    except collecting.CheckpointRefused as refusal:
        raise Problem(409, "Refused", str(refusal)) from refusal
    return Response(status_code=204)


@problem_responses
async def file(request: Request) -> Response:
    """Serves a file of the checkpoint from which the attempt goes on; supports Range."""
    node = await require_node(request)
    part = await in_thread(claimed_part, node, request.path_params)
    sha256 = request.path_params["sha256"]
    if not await in_thread(_may_fetch, part, sha256):
        raise not_found("The attempt does not begin with such a file.")
    return StoredFileResponse(blobs.path(sha256), sha256=sha256, headers=PRIVATE)


def _may_fetch(part: AttemptNode, sha256: str) -> bool:
    return CheckpointFile.objects.filter(
        checkpoint__restored_by=part.attempt_id, sha256=sha256
    ).exists() and blobs.hold(sha256)


async def _body(request: Request, read: Callable[[Any], _T]) -> _T:
    data = await read_body(request, MAX_BODY_BYTES)
    try:
        return read(json.loads(data))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Problem(400, "Not a checkpoint", f"The body is wrong: {error!r:.200}") from error


def _announcement(body: Any) -> tuple[list[Announced], list[str] | None]:
    names = None if body.get("names") is None else [_text(name) for name in body["names"][:MAX_NAMES]]
    return [_entry(entry) for entry in body["entries"][:MAX_ENTRIES]], names


def _entry(data: Any) -> Announced:
    version = _text(data["version"])
    if not VERSION.match(version):
        raise ValueError("version must be hexadecimal digits")
    return Announced(
        name=_text(data["name"])[:MAX_CHECKPOINT_NAME],
        version=version,
        sign=CheckpointSign(_text(data["sign"])),
        size=min(max(0, int(data["size"])), 2**62),
        wrong=_text(data["wrong"])[:MAX_SENTENCE],
    )


def _delivery(body: Any) -> tuple[list[DeliveredFile], str]:
    files = [DeliveredFile(_text(file["path"]), _text(file["sha256"])) for file in body["files"]]
    for file in files:
        if not blobs.SHA256.match(file.sha256):
            raise ValueError("sha256 must be 64 hexadecimal digits")
    return files, _text(body.get("torn", ""))[:MAX_SENTENCE]


def _text(value: Any) -> str:
    # No database stores a NUL or half of a surrogate pair.
    if type(value) is not str or "\0" in value:
        raise ValueError("a text is missing, or has a NUL")
    value.encode()
    return value
