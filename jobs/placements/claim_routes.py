"""The routes by which nodes of an allocation become nodes of the hub, with the claim code of their job."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response

from clusters.allocations import redemption
from clusters.allocations.node_program import archive_path
from clusters.allocations.redemption import Claim, ClaimRefused, ClaimTooEarly
from workspaces.http.problems import FieldProblem, Problem, not_found, problem_responses
from workspaces.http.requests import read_body
from workspaces.http.threads import in_thread

MAX_BYTES = 4096
MAX_TEXT = 300


@problem_responses
async def redeem_claim(request: Request) -> Response:
    claim = _claim(await read_body(request, MAX_BYTES))
    with _refusals():
        node, token = await in_thread(redemption.redeem, claim)
    return JSONResponse({"name": node.name, "token": token}, headers={"Cache-Control": "no-store"})


@problem_responses
async def take_trouble(request: Request) -> Response:
    """Takes a claim with `trouble`, a sentence: why the node program cannot start on this node."""
    data = await read_body(request, MAX_BYTES)
    claim = _claim(data)
    trouble = json.loads(data).get("trouble")
    if not isinstance(trouble, str) or not trouble or len(trouble) > MAX_TEXT:
        raise FieldProblem(400, "Bad request", "trouble", f"must be a text of 1 to {MAX_TEXT} characters")
    with _refusals():
        await in_thread(redemption.note_trouble, claim, trouble)
    return Response(status_code=204)


@problem_responses
async def program(request: Request) -> Response:
    """Returns the node program of this digest to a job whose allocation is open."""
    code = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if not await in_thread(redemption.is_open, code):
        raise FieldProblem(403, "Refused", "code", "this code belongs to no open request of this hub")
    path = archive_path(request.path_params["sha256"])
    if path is None:
        raise not_found("This hub has no node program of this digest: it has been upgraded since.")
    return FileResponse(path, media_type="application/gzip")


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except ClaimTooEarly as early:
        raise Problem(503, "Not yet", early.message, Retry_After="1") from early
    except ClaimRefused as refusal:
        raise FieldProblem(403, "Refused", refusal.field, refusal.message) from refusal


def _claim(data: bytes) -> Claim:
    try:
        body = json.loads(data)
        claim = Claim(
            code=str(body["code"]),
            job_id=int(body["job_id"]),
            restart_count=int(body["restart_count"]),
            slurm_node=str(body["node"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise Problem(400, "Not a claim", "Send JSON with code, job_id, restart_count and node.") from error
    if max(len(claim.code), len(claim.slurm_node)) > MAX_TEXT or "\x00" in claim.slurm_node:
        raise Problem(400, "Not a claim", "The code or the node's name is too long.")
    return claim
