"""S10: one report, however it is made, is decoded or refused within bounded memory and time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import msgpack
import pytest

from jobs.node_api import node_routes, report_decoder
from jobs.node_api.node_session import sessions
from tests.attacks.parsers.bounds import bounded
from tests.jobs.raw import enrolled, opened, packed
from trainhub_launch.errors import WireError
from trainhub_launch.report import MAX_ATTEMPTS, MAX_REPORT_BYTES, Report

REPORT = msgpack.unpackb(packed())


def with_field(**fields: Any) -> bytes:
    return bytes(msgpack.packb({**REPORT, **fields}))


def array(item: bytes, size: int) -> bytes:
    count = (size - 5) // len(item)
    return b"\xdd" + count.to_bytes(4, "big") + item * count


def outputs(count: int) -> bytes:
    files = [
        {
            "path": f"checkpoints/epoch_{n:06d}/shard_{n:06d}.safetensors",
            "size": 10**9 + n,
            "sha256": f"{n:064x}",
        }
        for n in range(count)
    ]
    fact = {
        "run": "0" * 32,
        "attempt": 1,
        "phase": "done",
        "phase_at": {},
        "members": [],
        "logs": {},
        "outputs": files,
        "error": "",
        "error_kind": "",
        "stopping": "",
        "warnings": [],
        "ports": [],
        "versions": {},
        "daemons": [],
    }
    return with_field(attempts=[fact])


HOSTILE: dict[str, Callable[[], bytes]] = {
    "empty lists, 8 MiB": lambda: array(b"\x90", 8 * 2**20),
    "empty lists, 32 MiB": lambda: array(b"\x90", MAX_REPORT_BYTES),
    "empty lists below the measured size": lambda: array(b"\x90", report_decoder.MEASURED_FROM_BYTES - 8),
    "small maps below the measured size": lambda: array(
        b"\x81\xa0\x90", report_decoder.MEASURED_FROM_BYTES - 8
    ),
    "small maps": lambda: array(b"\x81\xa0\x90", 8 * 2**20),
    "as many lists as pass": lambda: array(b"\x90", 999_000),
    "small numbers": lambda: array(b"\x00", MAX_REPORT_BYTES),
    "short texts": lambda: array(b"\xa2ab", MAX_REPORT_BYTES),
    "one long text of wide letters": lambda: b"\xdb" + (2**24).to_bytes(4, "big") + "𝐀".encode() * 2**22,
    "long texts of wide letters": lambda: array(b"\xda\xff\xfc" + "𝐀".encode() * 0x3FFF, MAX_REPORT_BYTES),
    "lists that say more than is there": lambda: (
        b"\xdd\x01\xff\xff\xff" * 1000 + b"\x00" * report_decoder.MEASURED_FROM_BYTES
    ),
    "a map that says more than is there": lambda: (
        b"\xdf\xff\xff\xff\xff" + b"\x00" * report_decoder.MEASURED_FROM_BYTES
    ),
    "nested without end": lambda: b"\x91" * 8 * 2**20,
    "nested as deeply as the decoder goes": lambda: with_field(agent=[]).replace(
        b"agent\x90", b"agent" + b"\x91" * 500 + b"\x90"
    ),
    "extension types": lambda: array(b"\xd4\x00\x00", 2**20),
    "a list for a text": lambda: with_field(agent=[[0] * 100_000]),
    "many attempts that live": lambda: with_field(living=[["0" * 32, 1]] * 20_000),
    "many events": lambda: with_field(events=[{}] * 100_000),
    "moments without end": lambda: with_field(
        buckets=[
            {
                "start": 0,
                "step_s": 10,
                "subjects": [""],
                "metrics": ["cpu_pct"],
                "values": b"\0" * 14400,
                "peaks": b"\0" * 14400,
            }
        ]
        * 1000
    ),
}


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with opened() as opened_client:
        yield opened_client


def refused(data: bytes) -> bool:
    try:
        Report.from_wire(report_decoder.decoded(data))
    except WireError as error:
        return len(str(error)) < 500
    return False


@pytest.mark.parametrize("name", HOSTILE)
def test_a_report_that_is_none_is_refused_within_the_limits(name: str) -> None:
    assert bounded(lambda: refused(HOSTILE[name]()), max_memory_bytes=80 * 2**20)


def test_what_a_report_takes_in_memory_is_estimated_well() -> None:
    """The estimate must not lie far below what the decoder takes, or the limit on it is none."""
    import tracemalloc

    for data in (
        array(b"\x90", 2**19),
        array(b"\x81\xa0\x90", 2**19),
        array(b"\xcb" + b"\x3f" * 8, 2**20),
        outputs(2000),
    ):
        tracemalloc.start()
        held = msgpack.unpackb(data)
        taken = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert held
        assert taken < 1.3 * report_decoder.measure(data) < 4 * taken


@pytest.mark.parametrize("files", [1, 1000, 80_000])
def test_the_outputs_of_an_honest_run_are_taken(files: int) -> None:
    report = Report.from_wire(report_decoder.decoded(outputs(files)))
    assert len(report.attempts[0].outputs) == files


def test_the_logs_of_an_honest_node_are_taken_and_are_decoded_as_before() -> None:
    chunks = [
        {
            "run": "0" * 32,
            "attempt": 1,
            "name": f"user_logs/std_log_{rank}.txt",
            "offset": 0,
            "data": bytes([rank % 256]) * 65536,
        }
        for rank in range(250)
    ]
    data = with_field(logs=chunks, living=[["0" * 32, 1]])
    assert len(data) > 15 * 2**20
    assert report_decoder.decoded(data) == msgpack.unpackb(data)
    assert bounded(lambda: len(Report.from_wire(report_decoder.decoded(data)).logs), max_cpu_s=0.5) == 250


def test_decoding_by_pieces_gives_the_same_as_decoding_at_once() -> None:
    data = outputs(40_000)
    assert report_decoder.measure(data) > report_decoder.DECODED_AT_ONCE_BYTES
    assert report_decoder.decoded(data) == msgpack.unpackb(data)


@pytest.mark.parametrize("rest", [b"\x00", b"\x90" * 200_000])
def test_bytes_after_the_report_are_refused(rest: bytes) -> None:
    with pytest.raises(WireError, match="not msgpack"):
        report_decoder.decoded(with_field(logs=[b"\0" * 200_000]) + rest)


def test_a_refusal_does_not_repeat_what_was_sent() -> None:
    with pytest.raises(WireError) as error:
        Report.from_wire({**REPORT, "attempts": [{"phase": "x" * 10**6}]})
    assert len(str(error.value)) < 500
    with pytest.raises(WireError, match=f"living must be a list of at most {MAX_ATTEMPTS:,}"):
        Report.from_wire({**REPORT, "living": [["r", 1]] * (MAX_ATTEMPTS + 1)})


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("valkey")
async def test_a_node_can_have_the_hub_hold_only_a_few_reports_at_once(client: httpx.AsyncClient) -> None:
    _, headers = await enrolled()
    release = asyncio.Event()

    async def held_back() -> AsyncIterator[bytes]:
        yield packed()[:5]
        await release.wait()
        yield packed()[5:]

    async def send() -> httpx.Response:
        return await client.post("/api/v1/node/report/", headers=headers, content=held_back())

    held = [asyncio.create_task(send()) for _ in range(node_routes.MAX_REPORTS_AT_ONCE)]
    token = headers["Authorization"].removeprefix("Bearer ")
    while (session := sessions.recall(token)) is None or (
        session.reports_under_way < node_routes.MAX_REPORTS_AT_ONCE
    ):
        await asyncio.sleep(0.01)
    late = await client.post("/api/v1/node/report/", headers=headers, content=packed())
    assert (late.status_code, late.headers["retry-after"]) == (503, "1")
    release.set()
    assert [answer.status_code for answer in await asyncio.gather(*held)] == [
        200
    ] * node_routes.MAX_REPORTS_AT_ONCE
    assert (await client.post("/api/v1/node/report/", headers=headers, content=packed())).status_code == 200
    assert session.reports_under_way == 0
