"""Many nodes that tell numbers as real agents do, for next to no CPU of their own: bodies are encoded once,
and only their times are written anew; a few connections carry them."""

from __future__ import annotations

import asyncio
import random
import secrets
import struct
import time
from array import array
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgpack

from trainhub_launch.machine import GpuFact, Heartbeat
from trainhub_launch.metrics import COUNTERS, GPU_METRICS, HOST_METRICS
from trainhub_launch.report import Report
from trainhub_launch.telemetry import BUCKET_S, HOST, SAMPLE_S, Block

GIB = 1024**3
MAX_BUCKETS = 6
GPU_NAMES = tuple(metric.key for metric in GPU_METRICS)
HOST_NAMES = tuple(metric.key for metric in HOST_METRICS)
# Nothing that an alert is about: a fleet in which every GPU fires several would measure the alerts.
COUNTS = {**dict.fromkeys(COUNTERS, 0), "energy_mj": 12345, "pcie_generation": 5, "pcie_width": 16}
COUNTS |= {"pcie_generation_max": 5, "pcie_width_max": 16}
HOTTEST = 70.0
# Stand in encoded bodies where the times belong.
SENT_AT, BUCKET_START, SAMPLE_START = 1234567890.125, 2_000_000_010, 2_000_000_007


@dataclass
class Told:
    """What the nodes saw. Seconds."""

    answer_s: list[float] = field(default_factory=list)
    late_s: list[float] = field(default_factory=list)
    """How long a report that was due had to wait for the answers to those before it."""
    stored_s: list[float] = field(default_factory=list)
    """From a bucket's end to the answer that confirms it."""
    refused: dict[str, int] = field(default_factory=dict)
    sent_bytes: int = 0

    def marks(self) -> tuple[int, ...]:
        return len(self.answer_s), len(self.late_s), len(self.stored_s), self.sent_bytes

    def since(self, marks: tuple[int, ...]) -> Told:
        answers, late, stored, sent = marks
        return Told(
            self.answer_s[answers:], self.late_s[late:], self.stored_s[stored:], {}, self.sent_bytes - sent
        )


class Teller:
    """One node. `due`: when it reports next, by the monotonic clock."""

    def __init__(self, name: str, token: str, gpus: int, due: float) -> None:
        self.name, self.due = name, due
        self.uuids = tuple(
            f"GPU-{secrets.token_hex(4)}-{secrets.token_hex(2)}-{name}-{index}" for index in range(gpus)
        )
        self._head = (
            f"POST /api/v1/node/report/ HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/msgpack\r\nContent-Length: "
        ).encode()
        self._agent = secrets.token_hex(16)
        self._bodies: dict[tuple[int, bool], tuple[bytearray, dict[float, list[int]]]] = {}
        self._is_watched, self._sent = False, 0.0
        self._unconfirmed: deque[int] = deque()
        self._next_bucket = (int(time.time()) // BUCKET_S) * BUCKET_S
        self._numbers = random.Random(name)

    def request(self) -> bytes:
        now, self._sent = time.time(), time.monotonic()
        while self._next_bucket + BUCKET_S <= now:
            self._unconfirmed.append(self._next_bucket)
            self._next_bucket += BUCKET_S
        count = min(len(self._unconfirmed), MAX_BUCKETS)
        body, places = self._bodies.get((count, self._is_watched)) or self._encode(count)
        for place in places[SENT_AT]:
            struct.pack_into(">d", body, place, now)
        for place in places[BUCKET_START]:
            struct.pack_into(">I", body, place, self._unconfirmed[0])
        for place in places[SAMPLE_START]:
            struct.pack_into(">I", body, place, int(now) - 1)
        return self._head + b"%d\r\n\r\n" % len(body) + bytes(body)

    def answered(self, data: bytes, told: Told) -> None:
        ack = msgpack.unpackb(data)
        now = time.time()
        while self._unconfirmed and self._unconfirmed[0] + BUCKET_S <= ack["buckets_until"]:
            told.stored_s.append(now - (self._unconfirmed.popleft() + BUCKET_S))
        self._is_watched = ack["is_watched"]
        self.due = max(self.due, self._sent) + ack["interval_s"]

    def _encode(self, count: int) -> tuple[bytearray, dict[float, list[int]]]:
        report = Report(
            agent=self._agent,
            sequence=1,
            sent_at=SENT_AT,
            heartbeat=self._beat(),
            buckets=self._blocks(BUCKET_START, BUCKET_S, count) if count else (),
            samples=self._blocks(SAMPLE_START, SAMPLE_S, 1) if self._is_watched else (),
        )
        body = bytearray(msgpack.packb(report.to_wire()))
        marks = {
            SENT_AT: struct.pack(">Bd", 0xCB, SENT_AT),
            BUCKET_START: struct.pack(">BI", 0xCE, BUCKET_START),
            SAMPLE_START: struct.pack(">BI", 0xCE, SAMPLE_START),
        }
        places = {what: _all_of(mark, body) for what, mark in marks.items()}
        self._bodies[count, self._is_watched] = body, places
        return body, places

    def _blocks(self, start: int, step_s: int, steps: int) -> tuple[Block, ...]:
        return tuple(
            Block(start, step_s, subjects, metrics, values, values if step_s == BUCKET_S else b"")
            for subjects, metrics in (((HOST,), HOST_NAMES), (self.uuids, GPU_NAMES))
            if subjects
            for values in [self._matrix(metrics * (steps * len(subjects)))]
        )

    def _matrix(self, metrics: Sequence[str]) -> bytes:
        return array("f", map(self._number, metrics)).tobytes()

    def _number(self, metric: str) -> float:
        return 0.0 if metric.startswith("throttled_") else self._numbers.uniform(0, HOTTEST)

    def _beat(self) -> Heartbeat:
        return Heartbeat(
            agent_version="simulated",
            hostname=self.name,
            address="10.1.0.1",
            interface="eth0",
            cores=64,
            slots=64,
            memory_bytes=512 * GIB,
            memory_used_bytes=40 * GIB,
            cpu_pct=3.0,
            disk_free_bytes=900 * GIB,
            boot_id=self._agent,
            driver="550.54.15",
            cuda="12.4",
            numbers={name: self._number(name) for name in HOST_NAMES},
            gpus=tuple(
                GpuFact(
                    uuid=uuid,
                    index=index,
                    name="Simulated H100",
                    memory_bytes=80 * GIB,
                    numbers={name: self._number(name) for name in GPU_NAMES},
                    counters=COUNTS,
                )
                for index, uuid in enumerate(self.uuids)
            ),
        )


class Road(asyncio.Protocol):
    """One connection, for the reports of many nodes one after another."""

    def __init__(self, nodes: list[Teller], told: Told) -> None:
        self._nodes, self._told = nodes, told
        self._transport: asyncio.Transport | None = None
        self._got = bytearray()
        self._busy: tuple[Teller, float] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._go_on()

    def connection_lost(self, _: Exception | None) -> None:
        self._transport = None

    def data_received(self, data: bytes) -> None:
        self._got += data
        head, separator, rest = self._got.partition(b"\r\n\r\n")
        if not separator or self._busy is None:
            return
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        if len(rest) < length:
            return
        node, started = self._busy
        now = time.monotonic()
        self._got, self._busy = bytearray(), None
        self._told.answer_s.append(now - started)
        if head.startswith(b"HTTP/1.1 200"):
            node.answered(bytes(rest), self._told)
        else:
            what = bytes(head[:12]).decode() + " " + bytes(rest[:200]).decode(errors="replace")
            self._told.refused[what] = self._told.refused.get(what, 0) + 1
            node.due = now + 1
        self._go_on()

    def _go_on(self) -> None:
        """Send the report that is due, or come back when one is."""
        if self._transport is None or self._busy is not None:
            return
        now = time.monotonic()
        node = min(self._nodes, key=lambda one: one.due)
        if node.due > now:
            asyncio.get_running_loop().call_later(node.due - now, self._go_on)
            return
        self._told.late_s.append(now - node.due)
        self._busy = node, now
        request = node.request()
        self._told.sent_bytes += len(request)
        self._transport.write(request)


def _all_of(mark: bytes, body: bytearray) -> list[int]:
    """Where the number behind each mark's type byte begins."""
    positions, at = [], body.find(mark)
    while at >= 0:
        positions.append(at + 1)
        at = body.find(mark, at + 1)
    return positions
