"""The order of a node to run another version, what it says about it, and the archive."""

from __future__ import annotations

import json

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response

from clusters.agent_upgrades import program_orders, rollouts
from clusters.agent_upgrades.program_signing import KeyUnusable
from clusters.agent_upgrades.rollouts import UpgradeRefused
from jobs.node_api.auth import require_node
from trainhub_launch.upgrades.program_order import ENDS, STEPS
from workspaces.http.problems import FieldProblem, Problem, not_found, problem_responses
from workspaces.http.requests import read_body
from workspaces.http.threads import in_thread

ADDRESS = "/api/v1/node/upgrade/"
MAX_BYTES = 8192
MAX_VERSION, MAX_WHY = 32, 1000


@problem_responses
async def order(request: Request) -> Response:
    """Returns the order that this node is to follow now, null without one."""
    node = await require_node(request)
    try:
        current = await in_thread(program_orders.order_of_node, node)
    except KeyUnusable as error:
        raise Problem(503, "Not yet", str(error), Retry_After="30") from error
    return JSONResponse(
        {"order": current.to_json() if current else None}, headers={"Cache-Control": "no-store"}
    )


@problem_responses
async def take_step(request: Request) -> Response:
    """Takes up what the node says about its order."""
    node = await require_node(request)
    data = await read_body(request, MAX_BYTES)
    try:
        body = json.loads(data)
        number, step = body["order"], body["step"]
        version, why = body["version"], body["why"]
    except (ValueError, KeyError, TypeError) as error:
        raise Problem(400, "Not a step", "Send JSON with order, step, version and why.") from error
    if type(number) is not int or not 0 < number < 2**63:
        raise FieldProblem(400, "Bad request", "order", "must be the number of an order")
    if step not in (*STEPS, *ENDS):
        raise FieldProblem(400, "Bad request", "step", f"must be one of {', '.join((*STEPS, *ENDS))}")
    for name, value, longest in (("version", version, MAX_VERSION), ("why", why, MAX_WHY)):
        if not isinstance(value, str) or len(value) > longest:
            raise FieldProblem(400, "Bad request", name, f"must be a text of at most {longest} characters")
    try:
        await in_thread(rollouts.take_step, node, number, step, version, why)
    except UpgradeRefused as refusal:
        raise Problem(409, "Refused", str(refusal)) from refusal
    return Response(status_code=204)


@problem_responses
async def archive(request: Request) -> Response:
    """Returns the archive that the node's order names."""
    node = await require_node(request)
    path = await in_thread(program_orders.archive_of_node, node, request.path_params["sha256"])
    if path is None:
        raise not_found("No order of this node names that program; the hub may have been upgraded since.")
    return FileResponse(path, media_type="application/gzip")
