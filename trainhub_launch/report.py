"""Report (node -> hub) and Ack (hub -> node): the one road up.

Everything here is idempotent: a report says how things *are*, so repeating or losing one changes
nothing. `to_wire()` gives plain lists, dicts, numbers, str and bytes, for msgpack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
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
MAX_ATTEMPTS = 4096
"""Attempts that one report names."""
MAX_EVENTS = 1000
MAX_BLOCK_STEPS = 20_000
"""Moments in all blocks of one report; agents send at most 60 buckets and a minute of samples."""
MAX_QUOTED = 200
"""Characters of what was sent that a refusal repeats."""


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
    """On the head of an MPI run: mpirun wants its daemon started on `host`, an address of the plan, with
    `argv` (the daemon's own name first). Once per attempt and host; what comes later for the same host is
    refused."""

    host: str
    argv: tuple[str, ...]


@dataclass(frozen=True)
class AttemptFact:
    """One attempt as its node knows it; sent again until the hub settles it.

    `phase`: one of PHASES. `phase_at`: phase -> Unix seconds, for every phase reached. `error`: why it could
    not be prepared or started, a sentence; with `error_kind` one of environment, snapshot, launch, upload,
    internal.
    `logs`: name -> size now, of every log file. `stopping`: why the node is ending it, "" = it is not:
    canceled, gang, timeout, orphan, served. `warnings`: sentences (a file in outputs/ left out …). From
    `ready` on, in a run of several nodes: `ports` are free here and kept for this attempt, and `versions`
    tells the software that all nodes must agree on ("python", "torch", "openmpi" … -> version)."""

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

    def without_growing_logs(self) -> AttemptFact:
        """Returns the fact without the sizes of its logs, which change all the time until the attempt is
        done."""
        return self if self.phase == "done" else replace(self, logs={})


@dataclass(frozen=True)
class Report:
    """`agent`: random id of this agent process; `sequence` counts its reports from 1.

    `living`: (run, attempt) of every attempt this node holds that is not settled, each report.
    `samples`: every second's numbers since the last report; lost ones are not sent again. `buckets` and
    `events`: those that no Ack has confirmed yet, a bounded number of the oldest."""

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
                raise WireError(
                    f"report version {data['version']} is not {VERSION}; upgrade the node or the hub"
                )
            beat = data["heartbeat"]
            return cls(
                agent=_text(data["agent"]),
                sequence=int(data["sequence"]),
                sent_at=float(data["sent_at"]),
                living=tuple(
                    (_text(run), int(attempt)) for run, attempt in _few(data, "living", MAX_ATTEMPTS)
                ),
                heartbeat=None if beat is None else heartbeat_of(beat),
                attempts=tuple(_attempt(item) for item in _few(data, "attempts", MAX_ATTEMPTS)),
                logs=tuple(read(LogChunk, item) for item in data["logs"]),
                samples=_blocks(data["samples"]),
                buckets=_blocks(data["buckets"]),
                events=tuple(_event(item) for item in _few(data, "events", MAX_EVENTS)),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            raise WireError(f"not a report: {type(error).__name__}: {str(error)[:MAX_QUOTED]}") from error


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

    `start`: attempts placed here that wait for a claim: the first one, or, of a node that is ready, the one
    that brings the final order (a lost wake-up). `stop`: to be ended.
    `daemons`: (run, attempt, argv) of each MPI daemon that is to be started here.
    `settled`: attempts the hub knows the whole outcome of; the node may forget and later delete them.
    `interval_s`: time to the next report when nothing happens.
    `buckets_until`: every bucket that ends at or before this moment (Unix seconds by the node's clock) is
    stored, and need not be sent again; `events_until`: so is every event up to this serial.
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
        """Run ids and attempts are passed on as they came, and it is for the node to check each before it
        uses one."""
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


def _few(data: Mapping[str, Any], name: str, most: int) -> Sequence[Any]:
    items = data[name]
    if not isinstance(items, list) or len(items) > most:
        raise WireError(f"{name} must be a list of at most {most:,}")
    return items


def _text(value: Any) -> str:
    # Not str(value): what a deeply nested list looks like as text may be many times as large as the report.
    if not isinstance(value, str):
        raise WireError(f"a text is {type(value).__name__}, not str")
    return value


def _blocks(items: Any) -> tuple[Block, ...]:
    blocks, left = [], MAX_BLOCK_STEPS
    for item in items:
        block = block_of(item)
        left -= block.steps
        if left < 0:
            raise WireError(f"the blocks of a report may hold {MAX_BLOCK_STEPS:,} moments together")
        blocks.append(block)
    return tuple(blocks)


def _attempt(data: Mapping[str, Any]) -> AttemptFact:
    if data["phase"] not in PHASES:
        raise WireError(f"the phase of an attempt must be one of {', '.join(PHASES)}")
    return read(
        AttemptFact,
        {
            **data,
            "phase_at": {_text(phase): float(at) for phase, at in data["phase_at"].items()},
            "logs": {_text(name): int(size) for name, size in data["logs"].items()},
            "members": tuple(read(MemberFact, item) for item in data["members"]),
            "outputs": tuple(read(OutputFile, item) for item in data["outputs"]),
            "warnings": tuple(_text(warning) for warning in data["warnings"]),
            "ports": tuple(int(port) for port in data["ports"]),
            "versions": {_text(name): _text(version) for name, version in data["versions"].items()},
            "daemons": tuple(
                DaemonCall(_text(call["host"]), tuple(_text(item) for item in call["argv"]))
                for call in data["daemons"]
            ),
        },
    )


def _event(data: Mapping[str, Any]) -> GpuEvent:
    event = read(GpuEvent, data)
    if event.kind not in EVENT_KINDS:
        raise WireError(f"the kind of an event must be one of {', '.join(EVENT_KINDS)}")
    return event
