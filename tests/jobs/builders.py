"""A cluster with a node that is played by hand, and runs on it: what the tests of this floor start from."""

from __future__ import annotations

import io
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.utils import timezone

from clusters.enrolment import node_tokens
from clusters.models import Cluster, Node
from clusters.node_reports import heartbeat
from jobs.models import Run, Snapshot
from jobs.node_api import claims, reports
from jobs.node_api.node_session import sessions
from jobs.node_orders.work_order import WorkOrder
from jobs.scheduling import run_actions
from jobs.sources import snapshots
from jobs.transfer import senders
from trainhub_launch.machine import BUILDS, SECRETS, GpuFact, Heartbeat, Interpreter
from trainhub_launch.order import NodeOrder
from trainhub_launch.report import Ack, AttemptFact, LogChunk, MemberFact, OutputFile, Report
from trainhub_launch.spec import RunSpec
from trainhub_launch.spec_reader import read_spec
from trainhub_launch.states import Phase, RankState
from workspaces.access import Principal
from workspaces.stored_files import blobs

PYTHON = "3.11.7"
ADDRESSES = {"alpha": "10.0.0.1", "beta": "10.0.0.2"}


def beat(*, slots: int = 8, gpus: int = 0, name: str = "alpha") -> Heartbeat:
    devices = tuple(GpuFact(uuid=f"GPU-{name}-{index}", index=index, name="H200") for index in range(gpus))
    return Heartbeat(
        agent_version="1",
        hostname=name,
        address=ADDRESSES.get(name, "10.0.0.9"),
        interface="eth0",
        cores=4,
        slots=slots,
        memory_bytes=2**33,
        memory_used_bytes=2**30,
        cpu_pct=3.0,
        disk_free_bytes=2**40,
        gpus=devices,
        interpreters=(Interpreter("/usr/bin/python3", PYTHON),),
        capabilities=(SECRETS, BUILDS),
    )


def node(name: str = "alpha", *, cluster: str = "local", slots: int = 8, gpus: int = 0) -> Node:
    made, _ = node_tokens.enrol_node(cluster, name)
    heartbeat.apply(made, beat(slots=slots, gpus=gpus, name=name), timezone.now())
    return made


def zipped(files: Mapping[str, str | bytes]) -> io.BytesIO:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    out.seek(0)
    return out


def snapshot(who: Principal, files: Mapping[str, str | bytes] | None = None) -> Snapshot:
    return snapshots.from_zip(zipped(files or {"train.py": "print('hello')\n"}), who)


def spec(who: Principal, **changes: Any) -> RunSpec:
    data = {"source": {"type": "snapshot", "id": snapshot(who).sha256}, "script": "train.py"}
    return read_spec(data | changes)


def processes(count: int) -> dict[str, Any]:
    return {"type": "pytorch", "process_count": count, "communication_backend": "gloo"}


def queued(who: Principal, *, cloned_from: Run | None = None, **changes: Any) -> Run:
    Cluster.objects.get_or_create(name="local")
    return run_actions.submit(spec(who, **changes), who, cloned_from=cloned_from)


def launched(who: Principal, **changes: Any) -> Run:
    """A run that waits for its node to claim it."""
    run = queued(who, **changes)
    run_actions.launch(run.pk)
    run.refresh_from_db()
    return run


def ended(rank: int, code: int | None = 0, *, at: float | None = None, **more: Any) -> MemberFact:
    now = time.time()
    return MemberFact(
        rank,
        RankState.ENDED,
        pid=100 + rank,
        started_at=now - 1,
        ended_at=at or now,
        exit_code=code,
        log_bytes=0,
        **more,
    )


def alive(rank: int) -> MemberFact:
    return MemberFact(rank, RankState.RUNNING, pid=100 + rank, started_at=time.time())


@dataclass
class Played:
    """A node that says what a test wants it to say."""

    node: Node
    nonce: str = "a" * 32
    sequence: int = 0
    facts: dict[tuple[str, int], AttemptFact] = field(default_factory=dict)
    ahead_s: float = 0.0
    """How far its clock is ahead of the hub's."""

    def clock(self) -> float:
        return time.time() + self.ahead_s

    def claim(self, run: Run | WorkOrder, nonce: str | None = None, attempt: int = 1) -> NodeOrder:
        order = claims.claim(self.node, run.pk, attempt, nonce or self.nonce, [6105, 6106, 6107])
        taken = AttemptFact(run.pk, attempt, Phase.ACCEPTED, phase_at={"accepted": self.clock()})
        self.facts.setdefault((run.pk, attempt), taken)
        return order

    def ready(self, run: Run, attempt: int = 1, **more: Any) -> Ack:
        """Of several nodes: everything up to the word that its part is ready."""
        self.claim(run, attempt=attempt)
        self.tell(run, "preparing", attempt=attempt)
        return self.tell(run, "ready", attempt=attempt, **{"ports": (6105, 6106, 6107), **more})

    def tell(
        self, run: Run | WorkOrder, phase: str, *members: MemberFact, attempt: int = 1, **more: Any
    ) -> Ack:
        """Report one attempt's new fact, and everything else as it was."""
        before = self.facts.get((run.pk, attempt)) or AttemptFact(run.pk, attempt, Phase(phase))
        phases = {**before.phase_at, phase: self.clock()}
        self.facts[(run.pk, attempt)] = replace(
            before, phase=Phase(phase), phase_at=phases, members=members or before.members, **more
        )
        return self.report()

    def log(self, run: Run | WorkOrder, name: str, offset: int, data: bytes, attempt: int = 1) -> int:
        """Send a chunk; the offset the hub wants next."""
        ack = self.report(logs=(LogChunk(run.pk, attempt, name, offset, data),))
        return ack.offsets[0][3]

    def report(
        self, *, logs: tuple[LogChunk, ...] = (), heartbeat: bool = True, living: Any = None, now: Any = None
    ) -> Ack:
        self.sequence += 1
        sent_at = self.clock() if now is None else now.timestamp() + self.ahead_s
        told = Report(
            agent="test",
            sequence=self.sequence,
            sent_at=sent_at,
            logs=logs,
            attempts=tuple(self.facts.values()),
            living=tuple(self.facts) if living is None else living,
            heartbeat=beat(name=self.node.name) if heartbeat else None,
        )
        # A node sends a file before it names it.
        for output in {output for fact in self.facts.values() for output in fact.outputs}:
            if blobs.SHA256.match(output.sha256) and blobs.exists(output.sha256):
                senders.record_sent(self.node, output.sha256)
        session = sessions.for_node(self.node)
        if now is not None:
            later_s = (now - timezone.now()).total_seconds()
            session.monotonic = lambda: time.monotonic() + later_s
        ack = reports.ingest(session, told, now)
        for key in ack.settled:
            self.facts.pop(key, None)
        return ack

    def finish(
        self, run: Run, *members: MemberFact, attempt: int = 1, outputs: tuple[OutputFile, ...] = ()
    ) -> Ack:
        """Claim nothing, run everything: straight to the end."""
        self.tell(run, "running", attempt=attempt)
        return self.tell(run, "done", *(members or (ended(0),)), attempt=attempt, outputs=outputs)


def running(who: Principal, **changes: Any) -> tuple[Played, Run]:
    """A node that runs rank 0 of a run, and the run."""
    alpha = Played(node())
    run = launched(who, **changes)
    alpha.claim(run)
    alpha.tell(run, "running", alive(0))
    run.refresh_from_db()
    return alpha, run


def two_nodes(who: Principal, **changes: Any) -> tuple[Played, Played, Run]:
    """Two nodes and a run of one process on each, which waits for them."""
    alpha, beta = Played(node("alpha")), Played(node("beta"), nonce="b" * 32)
    run = launched(who, **{"distribution": {**processes(2), "node_count": 2}, **changes})
    return alpha, beta, run


def both_running(who: Principal, **changes: Any) -> tuple[Played, Played, Run]:
    """The same, started: rank 0 on the first node, rank 1 on the second."""
    alpha, beta, run = two_nodes(who, **changes)
    for played in (alpha, beta):
        played.ready(run)
    for rank, played in enumerate((alpha, beta)):
        played.claim(run)
        played.tell(run, "running", alive(rank))
    run.refresh_from_db()
    return alpha, beta, run
