"""The routes by which nodes learn from whom they can take blocks of a dataset's files."""

from __future__ import annotations

import base64
import ipaddress
import json
from collections.abc import Callable
from typing import Any, TypeVar

from django.utils import timezone
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from clusters.models import Node
from datastores.swarms.exchange import MAX_BLOCKS, RECORD_BYTES, NodeNews, OtherBlocks, exchange, numbers_of
from datastores.swarms.models import PeerServer
from jobs.models import AttemptNode
from jobs.node_api.auth import require_node
from jobs.peers.certificates import make_certificate
from jobs.peers.tickets import part_of_ticket, ticket_for_peer, ticket_key
from trainhub_launch.json_types import JsonObject
from workspaces.http.problems import Problem, problem_responses, unauthorized
from workspaces.http.requests import read_body
from workspaces.http.scopes import bearer
from workspaces.http.threads import in_thread

# Five thousand hashes, and as many numbers.
MAX_BODY_BYTES = 1024 * 1024
NOT_STORED = {"Cache-Control": "no-store"}

_T = TypeVar("_T")


@problem_responses
async def register_server(request: Request) -> Response:
    """Takes up where a node gives data to others, and returns its new certificate."""
    node = await require_node(request)
    address, port = await _body(request, _server)
    answer = await in_thread(_register, node, address, port)
    return JSONResponse(answer, headers=NOT_STORED)


@problem_responses
async def swarm(request: Request) -> Response:
    """Takes up what a download has read, and returns what it is to read and which nodes have the rest."""
    access = await in_thread(part_of_ticket, bearer(request.scope) or "")
    if access is None:
        raise unauthorized("The ticket of a download is needed, while its attempt goes on.")
    news = await _body(request, _news)
    try:
        answer = await in_thread(_exchange, *access, news)
    except OtherBlocks as error:
        detail = "Other nodes divide these files into other blocks: their agents have another version."
        raise Problem(409, "Refused", detail) from error
    return JSONResponse(answer, headers=NOT_STORED)


def _register(node: Node, address: str, port: int) -> dict[str, str]:
    made = make_certificate(node.name)
    server, _ = PeerServer.objects.update_or_create(
        node=node,
        defaults={
            "address": address,
            "port": port,
            "fingerprint": made.fingerprint,
            "registered_at": timezone.now(),
        },
    )
    return {"certificate": made.certificate, "key": made.key, "ticket_key": ticket_key(server).hex()}


def _exchange(part: AttemptNode, files: str, news: NodeNews) -> JsonObject:
    answer = exchange(part.attempt.run.workspace_id, part.node, files, news)
    return {
        "read": answer.read,
        "after": answer.after,
        "hashes": [[row.node_id or 0, base64.b64encode(bytes(row.hashes)).decode()] for row in answer.rows],
        "peers": [
            {
                "node": peer.pk,
                "name": peer.name,
                "address": peer.peer_server.address,
                "port": peer.peer_server.port,
                "fingerprint": peer.peer_server.fingerprint,
                "ticket": ticket_for_peer(part, files, peer),
            }
            for peer in answer.peers
        ],
    }


async def _body(request: Request, read: Callable[[Any], _T]) -> _T:
    data = await read_body(request, MAX_BODY_BYTES)
    try:
        return read(json.loads(data))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Problem(400, "Bad request", f"The body is wrong: {error!r:.200}") from error


def _server(body: Any) -> tuple[str, int]:
    return str(ipaddress.ip_address(body["address"])), _number(body["port"], 1, 65535)


def _news(body: Any) -> NodeNews:
    blocks = _number(body["blocks"], 0, MAX_BLOCKS)
    hashes = base64.b64decode(body["hashes"], validate=True)
    if len(hashes) % RECORD_BYTES or any(number >= blocks for number in numbers_of(hashes)):
        raise ValueError("hashes")
    return NodeNews(
        blocks=blocks,
        after=_number(body["after"], 0, 2**62),
        hashes=hashes,
        needs=[_number(number, 0, blocks - 1) for number in body["needs"]],
        wants=_number(body["wants"], 0, MAX_BLOCKS),
        is_first=_truth(body["first"]),
        is_stalled=_truth(body["stalled"]),
        is_complete=_truth(body["complete"]),
    )


def _number(value: object, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ValueError("a number is missing or too large")
    return value


def _truth(value: object) -> bool:
    if type(value) is not bool:
        raise ValueError("true or false is missing")
    return value
