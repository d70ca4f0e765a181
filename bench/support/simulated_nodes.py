"""Nodes that report, claim and finish as real ones do, without any process behind them: many in one event
loop."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace

import msgpack

from bench.support.node_connection import NodeConnection
from trainhub_launch.machine import GpuFact, Heartbeat, Interpreter
from trainhub_launch.order import NodeOrder
from trainhub_launch.report import Ack, AttemptFact, LogChunk, MemberFact, Report
from trainhub_launch.states import Phase, RankState

Key = tuple[str, int]
GIB = 1024**3
RUNS_FOR_S = 2.0
LIVE_S, IDLE_S = 1.0, 5.0
LINE = b"a line of a run that is not there\n"


@dataclass
class Tally:
    """What all nodes together saw."""

    report_s: list[float] = field(default_factory=list)
    claim_s: list[float] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)


@dataclass
class Part:
    fact: AttemptFact
    order: NodeOrder
    logs: dict[str, int] = field(default_factory=dict)


class SimulatedNode:
    """`live` reports until it is cancelled: every second while it holds something, every five while it does
    not."""

    def __init__(
        self,
        name: str,
        token: str,
        place: tuple[str, int],
        tally: Tally,
        *,
        gpus: int = 8,
        runs_for_s: float = RUNS_FOR_S,
    ) -> None:
        self.name, self._runs_for_s = name, runs_for_s
        self._tally = tally
        # As a real one, whose reports do not wait for the answer to a claim.
        self._reports, self._claims = NodeConnection(*place, token), NodeConnection(*place, token)
        self._agent, self._sequence = secrets.token_hex(16), 0
        self._interval_s, self._interval_is_for_live, self._nonces = IDLE_S, False, dict[Key, str]()
        self._parts: dict[Key, Part] = {}
        self._news = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._asking: set[Key] = set()
        self._beat = _heartbeat(name, gpus, self._agent)

    async def live(self, delay_s: float) -> None:
        try:
            await asyncio.sleep(delay_s)
            await self._keep_reporting()
        finally:
            self._reports.close()
            self._claims.close()

    async def _keep_reporting(self) -> None:
        while True:
            self._news.clear()
            started = time.monotonic()
            await self._report()
            pause = self._pace() - (time.monotonic() - started)
            # `asyncio.wait_for` of Python 3.11 loses a cancellation that comes together with news.
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.05, pause)):
                    await self._news.wait()

    def _pace(self) -> float:
        """As the real one's: the hub's word, but not one for an idle node where it is busy now."""
        return (
            min(LIVE_S, self._interval_s)
            if self._parts and not self._interval_is_for_live
            else self._interval_s
        )

    async def _report(self) -> None:
        self._sequence += 1
        parts = list(self._parts.items())
        told = Report(
            agent=self._agent,
            sequence=self._sequence,
            sent_at=time.time(),
            living=tuple(key for key, _ in parts),
            heartbeat=replace(self._beat, cpu_pct=float(self._sequence % 100)),
            attempts=tuple(part.fact for _, part in parts),
            logs=tuple(
                LogChunk(*key, name, offset, LINE)
                for key, part in parts
                for name, offset in part.logs.items()
                if offset == 0
            ),
        )
        body = msgpack.packb(told.to_wire())
        started = time.monotonic()
        try:
            answer = await self._reports.post("/api/v1/node/report/", body, "application/msgpack")
        except OSError as error:
            self._note(type(error).__name__)
            return
        self._tally.report_s.append(time.monotonic() - started)
        if answer.status != 200:
            self._note(f"report {answer.status}")
            return
        ack = Ack.from_wire(msgpack.unpackb(answer.content))
        self._interval_s, self._interval_is_for_live = ack.interval_s, bool(told.living)
        self._obey(ack)

    def _obey(self, ack: Ack) -> None:
        for run, attempt, name, offset in ack.offsets:
            if (run, attempt) in self._parts:
                self._parts[run, attempt].logs[name] = offset
        for order in ack.stop:
            if (order.run, order.attempt) in self._parts:
                self._finish((order.run, order.attempt))
        for key in ack.settled:
            self._parts.pop(key, None)
        for key in set(ack.start) - self._asking:
            self._asking.add(key)
            task = asyncio.create_task(self._claim(key))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            task.add_done_callback(lambda _, key=key: self._asking.discard(key))  # type: ignore[misc]

    async def _claim(self, key: Key) -> None:
        part = self._parts.get(key)
        if part is not None and part.order.go:
            return
        # The same one again after a lost answer, as the real one keeps it on its disk.
        nonce = self._nonces.setdefault(key, secrets.token_hex(16))
        ports = list(range(6105, 6113))
        body = json.dumps({"run": key[0], "attempt": key[1], "nonce": nonce, "ports": ports})
        started = time.monotonic()
        try:
            answer = await self._claims.post("/api/v1/node/claim/", body.encode(), "application/json")
        except OSError as error:
            # The answer to a later report asks for it again.
            self._note(f"claim {type(error).__name__}")
            return
        self._tally.claim_s.append(time.monotonic() - started)
        if answer.status != 200:
            self._note(f"claim {answer.status}")
            return
        order = NodeOrder.from_json(json.loads(answer.content))
        now = time.time()
        fact = (
            part.fact
            if part
            else AttemptFact(*key, Phase.ACCEPTED, phase_at={"accepted": now, "preparing": now})
        )
        self._parts[key] = Part(fact, order)
        if order.go:
            self._start(key)
        else:
            versions = {"python": "3.11.7", "torch": "2.13.0"}
            self._tell(key, replace(fact, ports=tuple(ports), versions=versions), "ready")

    def _start(self, key: Key) -> None:
        part = self._parts[key]
        part.logs = {process.log_name: 0 for process in part.order.command.processes}
        now = time.time()
        ranks = [process.rank for process in part.order.command.processes]
        members = tuple(
            MemberFact(rank, RankState.RUNNING, pid=1000 + rank, started_at=now) for rank in ranks
        )
        self._tell(
            key, replace(part.fact, members=members, logs=dict.fromkeys(part.logs, len(LINE))), "running"
        )
        asyncio.get_running_loop().call_later(self._runs_for_s, self._finish, key)

    def _finish(self, key: Key) -> None:
        part = self._parts.get(key)
        if part is None or part.fact.phase == "done":
            return
        now = time.time()
        members = tuple(
            replace(member, state=RankState.ENDED, ended_at=now, exit_code=0, log_bytes=len(LINE))
            for member in part.fact.members
        )
        self._tell(key, replace(part.fact, members=members), "done")

    def _tell(self, key: Key, fact: AttemptFact, phase: str) -> None:
        self._parts[key].fact = replace(
            fact, phase=Phase(phase), phase_at={**fact.phase_at, phase: time.time()}
        )
        self._news.set()

    def _note(self, what: str) -> None:
        self._tally.refused[what] = self._tally.refused.get(what, 0) + 1


def _heartbeat(name: str, gpus: int, boot_id: str) -> Heartbeat:
    number = int(name.rpartition("-")[2])
    return Heartbeat(
        agent_version="simulated",
        hostname=name,
        address=f"10.1.{number // 250}.{number % 250 + 1}",
        interface="eth0",
        cores=64,
        slots=64,
        memory_bytes=512 * GIB,
        memory_used_bytes=40 * GIB,
        cpu_pct=3.0,
        disk_free_bytes=900 * GIB,
        gpus=tuple(
            GpuFact(
                uuid=f"GPU-{name}-{index}",
                index=index,
                name="Simulated",
                memory_bytes=80 * GIB,
                numbers={
                    "memory_used_bytes": GIB,
                    "utilization_pct": 0.0,
                    "power_w": 70.0,
                    "temperature_c": 35.0,
                },
            )
            for index in range(gpus)
        ),
        interpreters=(Interpreter("/usr/bin/python3", "3.11.7"),),
        mpi="mpirun (Open MPI) 4.1.6",
        boot_id=boot_id,
    )
