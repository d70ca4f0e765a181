"""Numbers that no machine has, at the door: refused in a sentence, and the node's next report goes on."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import httpx
import msgpack
import pytest

from clusters.models import Gpu, Node, TelemetrySlice
from clusters.telemetry.slice_codec import slice_parts
from tests.jobs.builders import beat
from tests.jobs.raw import Headers, enrolled
from trainhub_launch.machine import GpuFact, Heartbeat
from trainhub_launch.metrics import COUNTERS, GPU_KEYS, HOST_KEYS
from trainhub_launch.report import Ack, Report
from trainhub_launch.telemetry import HOST, Block, GpuProcess, pack

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]
NAN, INFINITE = math.nan, math.inf


def wire(told: Heartbeat | None = None, *buckets: Block, **more: Any) -> dict[str, Any]:
    return Report("agent", 1, time.time(), heartbeat=told or beat(gpus=1), buckets=buckets, **more).to_wire()


async def send(client: httpx.AsyncClient, headers: Headers, data: dict[str, Any]) -> httpx.Response:
    return await client.post("/api/v1/node/report/", headers=headers, content=msgpack.packb(data))


def bucket(
    metrics: tuple[str, ...] = ("power_w",), value: float = 1.0, subjects: tuple[str, ...] = ("GPU-alpha-0",)
) -> Block:
    values = pack([[dict.fromkeys(metrics, value) for _ in subjects]], metrics)
    return Block(int(time.time()) // 10 * 10 - 10, 10, subjects, metrics, values, values)


async def refusal(client: httpx.AsyncClient, headers: Headers, data: dict[str, Any]) -> str:
    """Why the report is refused; the node's next one is taken."""
    answer = await send(client, headers, data)
    assert answer.status_code == 400, answer.text
    after = await send(client, headers, wire())
    assert after.status_code == 200
    return str(answer.json()["detail"])


class TestRefused:
    async def test_ten_thousand_gpus_in_one_report(self, client: httpx.AsyncClient) -> None:
        _, headers = await enrolled()
        numbers = dict.fromkeys(GPU_KEYS, 1.0)
        gpus = tuple(
            GpuFact(f"GPU-{number}", number % 1024, "H200", numbers=numbers) for number in range(10_000)
        )
        told = await refusal(client, headers, wire(replace(beat(), gpus=gpus)))
        assert told == "a node cannot have 10000 GPUs; 64 is the most"
        assert await Gpu.objects.acount() == 1

    async def test_ten_thousand_gpus_in_one_block(self, client: httpx.AsyncClient) -> None:
        _, headers = await enrolled()
        subjects = tuple(f"GPU-{number}" for number in range(10_000))
        told = await refusal(client, headers, wire(None, bucket(subjects=subjects)))
        assert told == "a block must have 1 to 512 different subjects, not 10000"

    @pytest.mark.parametrize(
        ("changed", "sentence"),
        [
            ({"metrics": ["power_w", "mood"]}, "a block's metrics must be different ones that the hub knows"),
            ({"values": b"\0\0\0"}, "a block of 3 bytes is no matrix of 1 to 3600 rows of 4 bytes"),
            ({"peaks": b""}, "buckets must have as many peaks as values, and samples none"),
            ({"start": 7}, "a block must begin at a multiple of its step, which is 1 or 10 s"),
            ({"start": 10.0}, "a block's start and step must be whole numbers"),
        ],
    )
    async def test_a_block_that_is_not_what_it_says(
        self, client: httpx.AsyncClient, changed: dict[str, Any], sentence: str
    ) -> None:
        _, headers = await enrolled()
        data = wire(None, bucket())
        data["buckets"][0].update(changed)
        assert await refusal(client, headers, data) == sentence

    @pytest.mark.parametrize("count", [-1, 2**63 - 1])
    async def test_counts_that_no_device_has(self, client: httpx.AsyncClient, count: int) -> None:
        _, headers = await enrolled()
        gpu = GpuFact("GPU-alpha-0", 0, "H200", counters={"ecc_corrected": count})
        told = await refusal(client, headers, wire(replace(beat(), gpus=(gpu,))))
        assert told.startswith("counters of a GPU must be whole numbers")


class TestUnknown:
    @pytest.mark.parametrize("nothing", [NAN, INFINITE, -INFINITE])
    async def test_no_number_anywhere_is_not_known_anywhere(
        self, client: httpx.AsyncClient, nothing: float
    ) -> None:
        _, headers = await enrolled()
        gpu = GpuFact(
            "GPU-alpha-0",
            0,
            "H200",
            numbers=dict.fromkeys(GPU_KEYS, nothing),
            counters=dict.fromkeys(COUNTERS, nothing),  # type: ignore[arg-type]
            processes=(GpuProcess(1, "python", sm_pct=nothing),),
        )
        told = replace(beat(), gpus=(gpu,), numbers=dict.fromkeys(HOST_KEYS, nothing), cpu_pct=nothing)
        answer = await send(
            client, headers, wire(told, bucket(value=NAN), bucket(("cpu_pct",), NAN, (HOST,)))
        )
        assert answer.status_code == 200, answer.text
        assert Ack.from_wire(msgpack.unpackb(answer.content)).buckets_until > time.time() - 60
        vitals = (await Node.objects.aget()).vitals
        assert (vitals["cpu_pct"], vitals["host"], vitals["gpus"]) == (None, {}, {"GPU-alpha-0": {}})
        for part in slice_parts(bytes((await TelemetrySlice.objects.aget()).data)):
            assert math.isnan(part.mean.max())

    async def test_metrics_of_a_newer_node_are_left_out_of_how_it_does(
        self, client: httpx.AsyncClient
    ) -> None:
        _, headers = await enrolled()
        gpu = GpuFact(
            "GPU-alpha-0",
            0,
            "H200",
            numbers={"power_w": 7.0, "mood": 1.0},
            counters={"smiles": 3, "xid_count": 1},
        )
        assert (await send(client, headers, wire(replace(beat(), gpus=(gpu,))))).status_code == 200
        vitals = (await Node.objects.aget()).vitals
        assert (vitals["gpus"], vitals["counters"]) == (
            {"GPU-alpha-0": {"power_w": 7.0}},
            {"GPU-alpha-0": {"xid_count": 1}},
        )


class TestTimes:
    async def test_a_node_whose_clock_is_an_hour_ahead_is_stored_by_the_hubs(
        self, client: httpx.AsyncClient
    ) -> None:
        _, headers = await enrolled()
        told = replace(bucket(), start=bucket().start + 3600)
        data = wire(None, told) | {"sent_at": time.time() + 3600}
        ack = Ack.from_wire(msgpack.unpackb((await send(client, headers, data)).content))
        assert ack.buckets_until == told.start + 10
        assert abs((await TelemetrySlice.objects.aget()).start - (told.start - 3600)) <= 10

    async def test_replayed_and_reordered_reports_change_nothing(self, client: httpx.AsyncClient) -> None:
        _, headers = await enrolled()
        one, other = bucket(value=1.0), bucket(value=2.0)
        first, second = wire(None, one), wire(None, replace(other, start=one.start))
        for data in (first, second, first, second, first):
            assert (await send(client, headers, data)).status_code == 200
        (part,) = slice_parts(bytes((await TelemetrySlice.objects.aget()).data))
        assert part.mean.tolist() == [[1.0]]
