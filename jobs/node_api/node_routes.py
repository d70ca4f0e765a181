"""The routes that a node calls: its configuration for wake-ups, claims, secrets and reports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import msgpack
from django.conf import settings
from django.utils import timezone
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from clusters import brokers, wakeups
from clusters.brokers.errors import BrokerUnavailable
from clusters.node_reports import hub_uptime
from jobs.node_api import claims, fast_ack, report_decoder, reports, run_secrets
from jobs.node_api.auth import require_node, require_session
from jobs.node_api.node_session import NodeSession
from trainhub_launch.errors import WireError
from trainhub_launch.report import Ack, Report
from workspaces.http.problems import Problem, problem_responses
from workspaces.http.requests import hub_url, read_body
from workspaces.http.threads import in_thread, in_turn, in_turn_of_claims, waiting_in_turn

MAX_CLAIM_BYTES = 64 * 1024
# What the node says it can do, in words.
CAPABILITIES = "X-TrainHub-Capabilities"
# What is larger is not decoded in the event loop, where all others wait for it.
LIGHT_BYTES = report_decoder.MEASURED_FROM_BYTES
# Reports of one node that are received and answered at the same time. An agent has one under way; another two
# may be left over from connections that have broken.
MAX_REPORTS_AT_ONCE = 4
# As many reports waiting for their turn double the time to the next.
UNHURRIED_FROM = 8
# Characters of a refusal, which may quote what was sent.
MAX_REFUSAL = 500


@problem_responses
async def config(request: Request) -> Response:
    """Returns how the node receives wake-ups, with new credentials at the broker; the old ones stop
    working."""
    node = await require_node(request)
    capabilities = request.headers.get(CAPABILITIES, "").split()
    try:
        line = await in_thread(brokers.login_for_node, node, request.url.hostname or "", capabilities)
    except BrokerUnavailable as error:
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
    session = await require_session(request)
    data = await read_body(request, MAX_CLAIM_BYTES)
    try:
        body = json.loads(data)
        run, attempt, nonce = str(body["run"]), int(body["attempt"]), str(body["nonce"])
        ports = [int(port) for port in body.get("ports", ())]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Problem(400, "Not a claim", "Send JSON with run, attempt, nonce and ports.") from error
    try:
        with session.claim_in_progress((run, attempt)):
            order = await in_turn_of_claims(
                claims.claim, session.node, run, attempt, nonce, ports, hub_url(request)
            )
    except claims.Later as wait:
        raise Problem(503, "Not yet", str(wait), Retry_After="1") from wait
    except claims.Refused as refusal:
        raise Problem(409, "Refused", str(refusal)) from refusal
    return JSONResponse(order.to_json())


@problem_responses
async def secrets(request: Request) -> Response:
    """Returns the values of the secrets that a claimed order names."""
    node = await require_node(request)
    data = await read_body(request, MAX_CLAIM_BYTES)
    try:
        body = json.loads(data)
        run, attempt, nonce = str(body["run"]), int(body["attempt"]), str(body["nonce"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Problem(400, "Not a claim", "Send JSON with run, attempt and nonce.") from error
    try:
        values = await in_turn_of_claims(run_secrets.take, node, run, attempt, nonce)
    except claims.Refused as refusal:
        raise Problem(409, "Refused", str(refusal)) from refusal
    answer = {"values": values, "masked": run_secrets.masked_texts(values)}
    return JSONResponse(answer, headers={"Cache-Control": "no-store"})


@problem_responses
async def report(request: Request) -> Response:
    """Ingests a node's report and returns the answer, which contains the node's orders."""
    session = await require_session(request)
    try:
        with _limited(session):
            data = await read_body(request, settings.MAX_REPORT_BYTES)
            # Counted as a sign of life from here on: the body has arrived, even if its turn comes late in a
            # busy hub.
            with hub_uptime.report_in_progress(session.node):
                body = await _answer(session, data, waiting_in_turn())
    except WireError as error:
        raise Problem(400, "Not a report", str(error)[:MAX_REFUSAL]) from error
    return Response(body, media_type="application/msgpack")


@contextmanager
def _limited(session: NodeSession) -> Iterator[None]:
    """Limits the bodies that the hub holds in memory for one node. Only the event loop comes here: no lock is
    needed."""
    if session.reports_under_way >= MAX_REPORTS_AT_ONCE:
        detail = f"{MAX_REPORTS_AT_ONCE} reports of this node are under way; send one at a time."
        raise Problem(503, "Not yet", detail, Retry_After="1")
    session.reports_under_way += 1
    try:
        yield
    finally:
        session.reports_under_way -= 1


async def _answer(session: NodeSession, data: bytes, waiting: int) -> bytes:
    if len(data) > LIGHT_BYTES:
        return await in_turn(_decode_and_ingest, session, data, waiting)
    decoded = _decode(data)
    # In the event loop, without a thread: nine of ten reports bring only numbers.
    ack = fast_ack.try_fast_ack(session, decoded, timezone.now())
    if ack is None:
        return await in_turn(_ingest, session, decoded, waiting)
    return _encode(session, decoded, ack, waiting)


def _decode_and_ingest(session: NodeSession, data: bytes, waiting: int) -> bytes:
    return _ingest(session, _decode(data), waiting)


def _ingest(session: NodeSession, decoded: Report, waiting: int) -> bytes:
    return _encode(session, decoded, reports.ingest(session, decoded), waiting)


def _decode(data: bytes) -> Report:
    return Report.from_wire(report_decoder.decoded(data))


def _encode(session: NodeSession, decoded: Report, ack: Ack, waiting: int) -> bytes:
    ack = replace(ack, interval_s=unhurried(ack.interval_s, waiting))
    session.expect_next(decoded, ack)
    packed: bytes = msgpack.packb(ack.to_wire())
    return packed


def unhurried(interval_s: float, waiting: int) -> float:
    """Returns the seconds until a node's next report. The interval grows with the number of reports `waiting`
    in a busy hub.

    Nodes send logs and facts at once in any case, and every node still reports at least twice before it would
    count as silent."""
    return max(
        interval_s, min(interval_s * (1 + waiting / UNHURRIED_FROM), settings.NODE_UNREACHABLE_AFTER / 2)
    )
