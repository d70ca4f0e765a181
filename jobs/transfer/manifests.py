"""Serves nodes the lists of the files of the datasets that their attempts read."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from jobs.node_api.auth import require_node
from jobs.transfer.claimed_parts import claimed_part
from workspaces.http.problems import not_found, problem_responses
from workspaces.http.threads import in_thread
from workspaces.stored_files import blobs
from workspaces.stored_files.conditional_response import PRIVATE
from workspaces.stored_files.responses import StoredFileResponse

ADDRESS = "/api/v1/node/manifests/{run:str}/{attempt:int}/{sha256:str}"


@problem_responses
async def manifest(request: Request) -> Response:
    """Serves a list that the order names; supports Range."""
    node = await require_node(request)
    part = await in_thread(claimed_part, node, request.path_params)
    sha256 = request.path_params["sha256"]
    attempt = part.attempt
    inputs = (attempt.downloads, attempt.references, attempt.input_lists)
    named = {item.get("manifest") for items in inputs for item in items.values()}
    if sha256 not in named or not await in_thread(blobs.exists, sha256):
        raise not_found("The attempt reads no such list.")
    return StoredFileResponse(blobs.path(sha256), sha256=sha256, headers=PRIVATE)
