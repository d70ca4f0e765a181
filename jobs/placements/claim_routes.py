"""The route by which the nodes of an allocation become nodes of the hub, with the claim code of their job."""

from __future__ import annotations

import json

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from clusters.allocations.redemption import Claim, ClaimRefused, ClaimTooEarly, redeem
from workspaces.http.problems import FieldProblem, Problem, problem_responses
from workspaces.http.requests import read_body
from workspaces.http.threads import in_thread

MAX_BYTES = 4096
MAX_TEXT = 300


@problem_responses
async def redeem_claim(request: Request) -> Response:
    claim = _claim(await read_body(request, MAX_BYTES))
    try:
        node, token = await in_thread(redeem, claim)
    except ClaimTooEarly as early:
        raise Problem(503, "Not yet", early.message, Retry_After="1") from early
    except ClaimRefused as refusal:
        raise FieldProblem(403, "Refused", refusal.field, refusal.message) from refusal
    return JSONResponse({"name": node.name, "token": token}, headers={"Cache-Control": "no-store"})


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
