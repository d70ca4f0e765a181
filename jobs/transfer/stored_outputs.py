"""The route by which nodes tell which outputs they have written into a datastore."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from jobs.node_api.auth import require_node
from jobs.stored_outputs import recording
from jobs.transfer.claimed_parts import claimed_part
from trainhub_launch.data.outputs import MOST_NOTED
from trainhub_launch.report import OutputFile
from workspaces.http.problems import Problem, problem_responses
from workspaces.http.requests import read_body
from workspaces.http.threads import in_thread
from workspaces.stored_files import blobs

ADDRESS = "/api/v1/node/stored-outputs/{run:str}/{attempt:int}/"
# So many with long paths.
MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_SIZE = 2**62


@problem_responses
async def note_stored(request: Request) -> Response:
    """POST: records `files` {"path", "size", "sha256"} that lie in the datastore of the attempt's outputs,
    and forgets the paths `removed`."""
    node = await require_node(request)
    part = await in_thread(claimed_part, node, request.path_params)
    data = await read_body(request, MAX_BODY_BYTES)
    try:
        body = json.loads(data)
        # Earlier agents name no removed ones.
        files, removed = _files(body), _paths(body.get("removed", []))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Problem(
            HTTPStatus.BAD_REQUEST, "Not a list of outputs", f"The body is wrong: {error!r:.200}"
        ) from error
    try:
        await in_thread(recording.record_stored, part, files, removed)
    except recording.NoFolder as refusal:
        raise Problem(HTTPStatus.CONFLICT, "Refused", str(refusal)) from refusal
    return Response(status_code=HTTPStatus.NO_CONTENT)


def _files(body: Any) -> list[OutputFile]:
    files = body["files"]
    if not isinstance(files, list) or len(files) > MOST_NOTED:
        raise ValueError(f"files must be a list of at most {MOST_NOTED}")
    return [_file(item) for item in files]


def _paths(items: Any) -> list[str]:
    if not isinstance(items, list) or len(items) > MOST_NOTED or not all(type(path) is str for path in items):
        raise ValueError(f"removed must be a list of at most {MOST_NOTED} texts")
    return items


def _file(item: Any) -> OutputFile:
    path, size, sha256 = item["path"], item["size"], item["sha256"]
    if type(path) is not str or type(size) is not int or not 0 <= size <= MAX_SIZE:
        raise ValueError("path must be a text, and size a number of bytes")
    if type(sha256) is not str or not blobs.SHA256.match(sha256):
        raise ValueError("sha256 must be 64 hexadecimal digits")
    return OutputFile(path, size, sha256)
