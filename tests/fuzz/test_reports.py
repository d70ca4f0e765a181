"""Reports and claims of a hostile node, against the real routes."""

from __future__ import annotations

import json
from typing import Any

import msgpack
import pytest
from asgiref.sync import async_to_sync
from hypothesis import given
from hypothesis import strategies as st

from jobs.node_api import report_decoder
from tests.fuzz.conftest import PROFILE
from tests.fuzz.limits import answer_of
from tests.fuzz.strategies import REPORT, VALUES, changed, damaged
from tests.jobs.raw import Headers, enrolled, opened
from trainhub_launch.errors import WireError
from trainhub_launch.report import Report

FACT: dict[str, Any] = {
    "run": "0" * 32, "attempt": 1, "phase": "running", "phase_at": {"running": 1.0},
    "members": [{"rank": 0, "state": "running", "pid": 1}], "logs": {"a.txt": 1},
    "outputs": [{"path": "a", "size": 1, "sha256": "0" * 64}], "error": "", "error_kind": "",
    "stopping": "", "warnings": ["w"],
    "ports": [1], "versions": {"python": "3.11"}, "daemons": [{"host": "h", "argv": ["prted"]}],
}  # fmt: skip
FULL = {
    **REPORT, "attempts": [FACT], "living": [["0" * 32, 1]],
    "logs": [{"run": "0" * 32, "attempt": 1, "name": "a.txt", "offset": 0, "data": b"x"}],
    "buckets": [
        {"start": 0, "step_s": 10, "subjects": [""], "metrics": ["cpu_pct"], "values": b"\0" * 4,
            "peaks": b"\0" * 4}
    ],
    "events": [{"serial": 1, "at": 1.0, "kind": "xid", "gpu": "", "code": 79, "detail": ""}],
}  # fmt: skip
CLAIM = {"run": "0" * 32, "attempt": 1, "nonce": "a" * 32, "ports": [1]}


def read(data: bytes) -> Report:
    return Report.from_wire(report_decoder.decoded(data))


@PROFILE
@given(
    changed(FULL).map(msgpack.packb)
    | damaged(msgpack.packb(FULL))
    | st.binary(max_size=400)
    | VALUES.map(msgpack.packb)
)
def test_a_report_is_read_or_refused(data: bytes) -> None:
    answer_of(lambda: read(data), WireError)


@PROFILE
@given(
    damaged(msgpack.packb({**FULL, "logs": [{"data": b"x" * report_decoder.MEASURED_FROM_BYTES}]}))
    | st.binary(max_size=100)
)
def test_what_is_measured_is_what_is_decoded(data: bytes) -> None:
    """The measurement and the decoder must agree on where each value ends."""
    body = data + b"\xc4\x00" if len(data) < report_decoder.MEASURED_FROM_BYTES else data
    try:
        report_decoder.measure(body)
    except WireError:
        return
    answer_of(lambda: msgpack.unpackb(body), ValueError)


@pytest.fixture
def node_headers(transactional_db: None, valkey: str) -> Headers:
    return async_to_sync(enrolled)()[1]


def answered(headers: Headers, path: str, body: bytes) -> int:
    async def ask() -> int:
        async with opened() as client:
            return (await client.post(path, headers=headers, content=body)).status_code

    return async_to_sync(ask)()


@PROFILE
@given(data=changed(FULL).map(msgpack.packb))
def test_the_hub_takes_or_refuses_any_report(node_headers: Headers, data: bytes) -> None:
    assert answer_of(lambda: answered(node_headers, "/api/v1/node/report/", data)) in (200, 400)


@PROFILE
@given(
    data=changed(CLAIM).map(lambda claim: json.dumps(claim, default=repr).encode())
    | damaged(json.dumps(CLAIM).encode())
)
def test_the_hub_takes_or_refuses_any_claim(node_headers: Headers, data: bytes) -> None:
    assert answer_of(lambda: answered(node_headers, "/api/v1/node/claim/", data)) in (400, 409, 503)
