"""Report (node -> hub) and Ack (hub -> node): the one road up.

Everything here is idempotent: a report says how things *are*, so repeating or losing one changes
nothing. `to_wire()` gives plain lists, dicts, numbers, str and bytes, for msgpack.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from trainhub_launch.errors import WireError
from trainhub_launch.machine import Heartbeat, heartbeat_of
from trainhub_launch.telemetry import EVENT_KINDS, Block, GpuEvent, block_of
from trainhub_launch.wire import read

VERSION = 3
MAX_CHUNK_BYTES = 4 * 1024 * 1024
"""Most bytes of one log in one report."""
MAX_REPORT_BYTES = 32 * 1024 * 1024
"""Most bytes of a whole encoded report; the hub refuses larger ones."""


@dataclass(frozen=True)
class LogChunk:
    """Bytes of one log from `offset` on. Empty data asks for the wanted offset."""

    run: str
    attempt: int
    name: str
    offset: int
    data: bytes


@dataclass(frozen=True)
class MemberFact:
    """One rank as its node knows it. `state`: waiting, running, ended. Times are Unix seconds.

    `exit_code` for a normal end, else `signal`; `log_bytes` is the log's final size, at the end.
    `ended_by_us`: the node ended it (cancel, gang stop, time out), so its exit is a consequence.
    `out_of_memory`: only with evidence (the kernel's own count); a bare SIGKILL is a signal.
    """

    rank: int
    state: str
    pid: int | None = None
    started_at: float | None = None
    ended_at: float | None = None
    exit_code: int | None = None
    signal: int | None = None
    log_bytes: int | None = None
    ended_by_us: bool = False
    out_of_memory: bool = False


@dataclass(frozen=True)
class OutputFile:
    """A file under outputs/, already uploaded; `path` is relative, '/'-separated."""

    path: str
    size: int
    sha256: str


PHASES = ("accepted", "preparing", "ready", "running", "uploading", "done")
READY = "ready"


@dataclass(frozen=True)
class DaemonCall:
    """On the head of an MPI run: mpirun wants its daemon started on `host`, an address of the plan, with `argv`
    (the daemon's own name first). Once per attempt and host; what comes later for the same host is refused."""

    host: str
    argv: tuple[str, ...]


@dataclass(frozen=True)
class AttemptFact:
    """One attempt as its node knows it; sent again until the hub settles it.

    `phase`: one of PHASES. `phase_at`: phase -> Unix seconds, for every phase reached. `error`: why it could not be prepared or
    started, a sentence; with `error_kind` one of environment, snapshot, launch, upload, internal.
    `logs`: name -> size now, of every log file. `stopping`: why the node is ending it, "" = it is not:
    canceled, gang, timeout, orphan, served. `warnings`: sentences (a file in outputs/ left out …).
    From `ready` on, in a run of several nodes: `ports` are free here and kept for this attempt, and `versions`
    tells the software that all nodes must agree on ("python", "torch", "openmpi" … -> version).
    """

    run: str
    attempt: int
    phase: str
    phase_at: Mapping[str, float] = field(default_factory=dict)
    members: tuple[MemberFact, ...] = ()
    logs: Mapping[str, int] = field(default_factory=dict)
    outputs: tuple[OutputFile, ...] = ()
    error: str = ""
    error_kind: str = ""
    stopping: str = ""
    warnings: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    daemons: tuple[DaemonCall, ...] = ()


@dataclass(frozen=True)
class Report:
    """`agent`: random id of this agent process; `sequence` counts its reports from 1.

    `living`: (run, attempt) of every attempt this node holds that is not settled, each report.
    `samples`: every second's numbers since the last report; lost ones are not sent again. `buckets` and `events`: those
    that no Ack has confirmed yet, a bounded number of the oldest.
    """

    agent: str
    sequence: int
    sent_at: float
    living: tuple[tuple[str, int], ...] = ()
    heartbeat: Heartbeat | None = None
    attempts: tuple[AttemptFact, ...] = ()
    logs: tuple[LogChunk, ...] = ()
    samples: tuple[Block, ...] = ()
    buckets: tuple[Block, ...] = ()
    events: tuple[GpuEvent, ...] = ()

    def to_wire(self) -> dict[str, Any]:
        return {"version": VERSION, **asdict(self)}

    @classmethod
    def from_wire(cls, data: Any) -> Report:
        """Raises WireError for anything that is not a report."""
        try:
            if data["version"] != VERSION:
                raise WireError(f"report version {data['version']} is not {VERSION}; upgrade the node or the hub")
            beat = data["heartbeat"]
            return cls(
                agent=str(data["agent"]),
                sequence=int(data["sequence"]),
                sent_at=float(data["sent_at"]),
                living=tuple((str(run), int(attempt)) for run, attempt in data["living"]),
                heartbeat=None if beat is None else heartbeat_of(beat),
                attempts=tuple(_attempt(item) for item in data["attempts"]),
                logs=tuple(read(LogChunk, item) for item in data["logs"]),
                samples=tuple(block_of(item) for item in data["samples"]),
                buckets=tuple(block_of(item) for item in data["buckets"]),
                events=tuple(_event(item) for item in data["events"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise WireError(f"not a report: {error!r}") from error


@dataclass(frozen=True)
class StopOrder:
    """End this attempt: SIGTERM, `grace_s` seconds, SIGKILL. `why`: canceled, timeout, gang, orphan, or
    served: every deciding rank has succeeded, and those here only serve."""

    run: str
    attempt: int
    grace_s: int
    why: str


@dataclass(frozen=True)
class Ack:
    """`offsets`: next wanted byte of every log named in the report, as (run, attempt, name, offset).

    `start`: attempts placed here that wait for a claim: the first one, or, of a node that is ready, the one that
    brings the final order (a lost wake-up). `stop`: to be ended.
    `daemons`: (run, attempt, argv) of each MPI daemon that is to be started here.
    `settled`: attempts the hub knows the whole outcome of; the node may forget and later delete them.
    `interval_s`: time to the next report when nothing happens.
    `buckets_until`: every bucket that ends at or before this moment (Unix seconds by the node's clock) is stored, and
    need not be sent again; `events_until`: so is every event up to this serial.
    `is_watched`: somebody looks at this node now.
    """

    offsets: tuple[tuple[str, int, str, int], ...] = ()
    start: tuple[tuple[str, int], ...] = ()
    stop: tuple[StopOrder, ...] = ()
    settled: tuple[tuple[str, int], ...] = ()
    daemons: tuple[tuple[str, int, tuple[str, ...]], ...] = ()
    interval_s: float = 5.0
    buckets_until: int = 0
    events_until: int = 0
    is_watched: bool = False

    def to_wire(self) -> dict[str, Any]:
        return {"version": VERSION, **asdict(self)}

    @classmethod
    def from_wire(cls, data: Any) -> Ack:
        """Run ids and attempts are passed on as they came, and it is for the node to check each before it uses one."""
        try:
            return cls(
                offsets=tuple((r, a, n, int(o)) for r, a, n, o in data["offsets"]),
                start=tuple((r, a) for r, a in data["start"]),
                stop=tuple(read(StopOrder, item) for item in data["stop"]),
                settled=tuple((r, a) for r, a in data["settled"]),
                daemons=tuple((r, a, tuple(str(item) for item in argv)) for r, a, argv in data["daemons"]),
                interval_s=float(data["interval_s"]),
                buckets_until=int(data["buckets_until"]),
                events_until=int(data["events_until"]),
                is_watched=bool(data["is_watched"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise WireError(f"not an ack: {error!r}") from error


def _attempt(data: Mapping[str, Any]) -> AttemptFact:
    if data["phase"] not in PHASES:
        raise WireError(f"unknown phase {data['phase']!r}")
    return read(
        AttemptFact,
        {
            **data,
            "phase_at": {str(phase): float(at) for phase, at in data["phase_at"].items()},
            "logs": {str(name): int(size) for name, size in data["logs"].items()},
            "members": tuple(read(MemberFact, item) for item in data["members"]),
            "outputs": tuple(read(OutputFile, item) for item in data["outputs"]),
            "warnings": tuple(str(warning) for warning in data["warnings"]),
            "ports": tuple(int(port) for port in data["ports"]),
            "versions": {str(name): str(version) for name, version in data["versions"].items()},
            "daemons": tuple(
                DaemonCall(str(call["host"]), tuple(str(item) for item in call["argv"])) for call in data["daemons"]
            ),
        }
    )


def _event(data: Mapping[str, Any]) -> GpuEvent:
    event = read(GpuEvent, data)
    if event.kind not in EVENT_KINDS:
        raise WireError(f"unknown event {event.kind!r}")
    return event
