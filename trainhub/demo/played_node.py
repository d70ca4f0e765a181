"""A node whose reports the demo makes up, and hands to the hub as those of an agent."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from clusters.models import Node
from clusters.node_reports.notices import agent_version
from jobs.models import Run
from jobs.node_api import claims, reports
from jobs.node_api.node_session import sessions
from jobs.transfer import senders
from trainhub_launch.machine import GpuFact, Heartbeat, Interpreter
from trainhub_launch.order import NodeOrder
from trainhub_launch.report import AttemptFact, LogChunk, MemberFact, OutputFile, Report
from trainhub_launch.states import Phase
from trainhub_launch.telemetry import Block

NONCE = "d" * 32
PORTS = (6105, 6106, 6107)
AGENT = "demo-past"
CORES, MEMORY_BYTES, DISK_BYTES = 64, 512 * 2**30, 3 * 2**40


@dataclass
class PlayedNode:
    """`address`: any but that of this machine, which several nodes of a run could not share.
    `interpreter`: the Python that runs use as environment `system`."""

    node: Node
    address: str
    gpus: tuple[GpuFact, ...]
    interpreter: Interpreter
    _sequence: int = 0
    _facts: dict[tuple[str, int], AttemptFact] = field(default_factory=dict)

    def claim(self, run: Run) -> NodeOrder:
        order = claims.claim(self.node, run.pk, 1, NONCE, PORTS)
        accepted = AttemptFact(run.pk, 1, Phase.ACCEPTED, phase_at={Phase.ACCEPTED: time.time()})
        self._facts.setdefault((run.pk, 1), accepted)
        return order

    def advance(
        self,
        run: Run,
        phase: Phase,
        members: tuple[MemberFact, ...] = (),
        *,
        logs: Sequence[LogChunk] = (),
        outputs: tuple[OutputFile, ...] = (),
        buckets: Sequence[Block] = (),
    ) -> None:
        """Reports that its part of the run is in the phase."""
        before = self._facts[run.pk, 1]
        sizes = {chunk.name: chunk.offset + len(chunk.data) for chunk in logs}
        self._facts[run.pk, 1] = replace(
            before,
            phase=phase,
            phase_at={phase: time.time(), **before.phase_at},
            members=members or before.members,
            logs={**before.logs, **sizes},
            outputs=outputs,
            ports=PORTS if phase is Phase.READY else before.ports,
        )
        for output in outputs:
            senders.record_sent(self.node, output.sha256)
        self.report(logs=logs, buckets=buckets)

    def report(self, *, logs: Sequence[LogChunk] = (), buckets: Sequence[Block] = ()) -> None:
        self._sequence += 1
        report = Report(
            agent=AGENT,
            sequence=self._sequence,
            sent_at=time.time(),
            living=tuple(self._facts),
            heartbeat=self._heartbeat(),
            attempts=tuple(self._facts.values()),
            logs=tuple(logs),
            buckets=tuple(buckets),
        )
        for key in reports.ingest(sessions.for_node(self.node), report).settled:
            self._facts.pop(key, None)

    def _heartbeat(self) -> Heartbeat:
        return Heartbeat(
            agent_version=agent_version(),
            hostname=self.node.name,
            address=self.address,
            interface="eth0",
            cores=CORES,
            slots=CORES,
            memory_bytes=MEMORY_BYTES,
            memory_used_bytes=MEMORY_BYTES // 5,
            cpu_pct=12.0,
            disk_free_bytes=DISK_BYTES,
            gpus=self.gpus,
            interpreters=(self.interpreter,),
        )
