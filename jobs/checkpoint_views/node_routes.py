"""The routes by which nodes announce checkpoints, deliver them, and fetch those from which an attempt goes
on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from jobs.checkpoints import collecting, stores
from jobs.checkpoints.collecting import Announced
from jobs.checkpoints.part_files import CheckpointRefused, DeliveredFile, PartDelivery
from jobs.models import AttemptNode, CheckpointFile
from jobs.node_api.auth import require_node
from jobs.transfer.claimed_parts import claimed_part
from trainhub_launch.data.checkpoint_order import MAX_CHECKPOINT_NAME
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
MAX_KEY = 1100
MAX_SIZE, MAX_NUMBER = 2**62, 2**31 - 1
VERSION = re.compile(r"[0-9a-f]{1,64}\Z")

_T = TypeVar("_T")


@problem_responses
async def announce(request: Request) -> Response:
    """Takes up what a node has, and returns the numbers of what it is to deliver."""
    node = await require_node(request)
    part = await in_thread(claimed_part, node, request.path_params)
    entries, names = await _body(request, _announcement)
    numbers = await in_thread(collecting.announce, part, entries, names)
    surplus = await in_thread(stores.surplus, part.attempt)
    # Earlier agents would remove all of a checkpoint whose number is in `surplus`.
    whole = [number for number, keys in surplus.items() if not keys]
    partial = {number: keys for number, keys in surplus.items() if keys}
    answer: dict[str, Any] = {"numbers": numbers}
    answer |= {"surplus": whole} if whole else {}
    return JSONResponse(answer | ({"shared_surplus": partial} if partial else {}))


@problem_responses
async def deliver(request: Request) -> Response:
    """Stores which files are a node's part of a checkpoint."""
    node = await require_node(request)
    part = await in_thread(claimed_part, node, request.path_params)
    delivery = await _body(request, _delivery)
    try:
        await in_thread(collecting.deliver, part, request.path_params["number"], delivery)
    except CheckpointRefused as refusal:
        raise Problem(409, "Refused", str(refusal)) from refusal
    return Response(status_code=204)


@problem_responses
async def remove(request: Request) -> Response:
    """Records that the node has removed checkpoints from the datastore of its attempt."""
    node = await require_node(request)
    part = await in_thread(claimed_part, node, request.path_params)
    numbers, problem, partial = await _body(request, _removal)
    await in_thread(stores.note_removed, part, numbers, problem, partial)
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
    # An infinite size is an OverflowError.
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
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
        size=_size(data["size"]),
        wrong=_text(data["wrong"])[:MAX_SENTENCE],
    )


def _delivery(body: Any) -> PartDelivery:
    version = _text(body.get("stored", ""))
    if version and not VERSION.match(version):
        raise ValueError("stored must be hexadecimal digits")
    files = [
        DeliveredFile(
            _text(file["path"]),
            _text(file["sha256"]),
            _size(file.get("size", 0)),
            _text(file.get("key", ""))[:MAX_KEY],
        )
        for file in body["files"]
    ]
    for file in files:
        if not blobs.SHA256.match(file.sha256):
            raise ValueError("sha256 must be 64 hexadecimal digits")
    return PartDelivery(files, _text(body.get("torn", ""))[:MAX_SENTENCE], version)


def _removal(body: Any) -> tuple[list[int], str, list[int]]:
    # Earlier agents share nothing.
    partial = _numbers(body.get("shared", []))
    return _numbers(body["numbers"]), _text(body["problem"])[:MAX_SENTENCE], partial


def _numbers(items: Any) -> list[int]:
    # Larger ones are of no checkpoint, and some databases refuse them.
    return [min(_size(number), MAX_NUMBER) for number in items[: stores.MAX_SURPLUS]]


def _size(value: Any) -> int:
    return min(max(0, int(value)), MAX_SIZE)


def _text(value: Any) -> str:
    # No database stores a NUL or half of a surrogate pair.
    if type(value) is not str or "\0" in value:
        raise ValueError("a text is missing, or has a NUL")
    value.encode()
    return value
