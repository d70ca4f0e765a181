"""The node's three doors: how to listen, what to run, what happened."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import msgpack
from django.conf import settings
from django.utils import timezone
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from clusters import brokers, wakeups
from clusters.brokers.errors import BrokerAway
from clusters.models import Node
from clusters.node_reports import hub_uptime
from jobs.node_api import claims, fast_ack, report_decoder, reports
from jobs.node_api.auth import require_node
from trainhub_launch.errors import WireError
from trainhub_launch.report import Ack, Report
from workspaces.http.problems import Problem, problem_responses
from workspaces.http.requests import hub_url, read_body
from workspaces.http.threads import in_thread, in_turn, waiting_in_turn

MAX_CLAIM_BYTES = 64 * 1024
CAPABILITIES = "X-TrainHub-Capabilities"
"""What the node says it can do, in words."""
LIGHT_BYTES = report_decoder.MEASURED_FROM_BYTES
"""What is larger is not decoded in the event loop, where all others wait for it."""
MAX_REPORTS_AT_ONCE = 4
"""Reports of one node that are received and answered at the same time. An agent has one under way; another
two may be left over from connections that have broken."""
UNHURRIED_FROM = 8
"""As many reports waiting for their turn double the time to the next."""
MAX_REFUSAL = 500
"""Characters of a refusal, which may quote what was sent."""
_under_way: Counter[int] = Counter()
"""Node -> how many of its reports are under way."""


@problem_responses
async def config(request: Request) -> Response:
    """How to listen for wake-ups. Asking lets the node in at the broker; what it held before ends."""
    node = await require_node(request)
    capabilities = request.headers.get(CAPABILITIES, "").split()
    try:
        line = await in_thread(brokers.line_of, node, request.url.hostname or "", capabilities)
    except BrokerAway as error:
        raise Problem(503, "Not yet", f"The broker does not answer: {error}", Retry_After="2") from error
    return JSONResponse(
        {
            "node": node.name,
            "cluster": node.cluster.name,
            "broker_url": line.url,
            "queue": wakeups.queue_of(node),
            "broker_ca": line.ca,
            "hub_time": timezone.now().timestamp(),
            # Read by nodes of version 1.
            "transport_options": {},
        }
    )


@problem_responses
async def claim(request: Request) -> Response:
    node = await require_node(request)
    data = await read_body(request, MAX_CLAIM_BYTES)
    try:
        asked = json.loads(data)
        run, attempt, nonce = str(asked["run"]), int(asked["attempt"]), str(asked["nonce"])
        ports = [int(port) for port in asked.get("ports", ())]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Problem(400, "Not a claim", "Send JSON with run, attempt, nonce and ports.") from error
    try:
        order = await in_turn(claims.claim, node, run, attempt, nonce, ports, hub_url(request))
    except claims.Later as wait:
        raise Problem(503, "Not yet", str(wait), Retry_After="1") from wait
    except claims.Refused as refusal:
        raise Problem(409, "Refused", str(refusal)) from refusal
    return JSONResponse(order.to_json())


@problem_responses
async def report(request: Request) -> Response:
    node = await require_node(request)
    try:
        with _one_of_few(node):
            data = await read_body(request, settings.MAX_REPORT_BYTES)
            with hub_uptime.talking(node):
                answer = await _answer(node, data, waiting_in_turn())
    except WireError as error:
        raise Problem(400, "Not a report", str(error)[:MAX_REFUSAL]) from error
    return Response(answer, media_type="application/msgpack")


@contextmanager
def _one_of_few(node: Node) -> Iterator[None]:
    """Bounds the bodies that one node can have the hub hold in memory. Only the event loop comes here: no
    lock is needed."""
    if _under_way[node.pk] >= MAX_REPORTS_AT_ONCE:
        detail = f"{MAX_REPORTS_AT_ONCE} reports of this node are under way; send one at a time."
        raise Problem(503, "Not yet", detail, Retry_After="1")
    _under_way[node.pk] += 1
    try:
        yield
    finally:
        _under_way[node.pk] -= 1
        if not _under_way[node.pk]:
            del _under_way[node.pk]


async def _answer(node: Node, data: bytes, waiting: int) -> bytes:
    if len(data) > LIGHT_BYTES:
        return await in_turn(_decode_and_ingest, node, data, waiting)
    told = _decode(data)
    ack = reports.ingest_numbers(node, told)
    if ack is None:
        return await in_turn(_ingest, node, told, waiting)
    return _encode(node, told, ack, waiting)


def _decode_and_ingest(node: Node, data: bytes, waiting: int) -> bytes:
    return _ingest(node, _decode(data), waiting)


def _ingest(node: Node, told: Report, waiting: int) -> bytes:
    return _encode(node, told, reports.ingest(node, told), waiting)


def _decode(data: bytes) -> Report:
    return Report.from_wire(report_decoder.decoded(data))


def _encode(node: Node, told: Report, ack: Ack, waiting: int) -> bytes:
    ack = replace(ack, interval_s=unhurried(ack.interval_s, waiting))
    fast_ack.expect(node, told, ack)
    packed: bytes = msgpack.packb(ack.to_wire())
    return packed


def unhurried(interval_s: float, waiting: int) -> float:
    """Time to a node's next sign of life, longer the more reports `waiting` find the hub busy. Logs and facts
    come at once all the same; and a node that lives is heard twice within the hub's patience."""
    return max(
        interval_s, min(interval_s * (1 + waiting / UNHURRIED_FROM), settings.NODE_UNREACHABLE_AFTER / 2)
    )
