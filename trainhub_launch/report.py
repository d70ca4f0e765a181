"""Report (node -> hub) and Ack (hub -> node): the only messages in which a node reports facts.

Everything here is idempotent: a report describes the present state, so repeating or losing one changes
nothing. `to_wire()` returns plain lists, dicts, numbers, str and bytes, for msgpack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from trainhub_launch.errors import WireError
from trainhub_launch.machine import Heartbeat, heartbeat_of
from trainhub_launch.states import PHASES, Phase, RankState
from trainhub_launch.telemetry import EVENT_KINDS, Block, GpuEvent, block_of
from trainhub_launch.wire import MAX_QUOTED, read

# The hub refuses any other, and with it every node that is not upgraded. A new field needs none, if it has a
# default: hubs are upgraded before nodes, and read reports without it.
VERSION = 3
# Maximum bytes of one log in one report.
MAX_CHUNK_BYTES = 4 * 1024 * 1024
# Maximum bytes of a whole encoded report; the hub refuses larger ones.
MAX_REPORT_BYTES = 32 * 1024 * 1024
# Maximum number of attempts in one report.
MAX_ATTEMPTS = 4096
MAX_EVENTS = 1000
# Maximum number of points in time in all blocks of one report. Agents send at most 60 buckets and a minute of
# samples.
MAX_BLOCK_STEPS = 20_000


@dataclass(frozen=True)
class LogChunk:
    """Bytes of one log from `offset` on. Empty data only requests the offset that the hub expects next."""

    run: str
    attempt: int
    name: str
    offset: int
    data: bytes


@dataclass(frozen=True)
class MemberFact:
    """One rank as its node knows it. Times are Unix seconds.

    `exit_code` after a normal end, otherwise `signal`; `log_bytes` is the final size of the log, at the end.
    `ended_by_us`: the node ended it (cancel, gang stop, time out), so its exit is only a consequence.
    `out_of_memory`: only with evidence (the kernel's own count); a SIGKILL without it is reported as a
    signal."""

    rank: int
    state: RankState
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
    """A file under outputs/ that has been uploaded; `path` is relative, separated by '/'."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class DaemonCall:
    """A request of the head of an MPI run: mpirun needs its daemon on `host`, an address of the plan, with
    `argv` (the daemon's own name first). The hub accepts one per attempt and host and refuses later ones."""

    host: str
    argv: tuple[str, ...]


@dataclass(frozen=True)
class AttemptFact:
    """One attempt as its node knows it; repeated until the hub settles it.

    `phase_at`: phase -> Unix seconds, for every phase reached. `error`: a sentence that explains why it could
    not be prepared or started; `error_kind`: an ErrorKind. `logs`: name -> present size of every log file.
    `stopping`: the StopReason for which the node is ending it, "" if it is not. Both are plain text here,
    because a newer node may know more of them. `warnings`: sentences (a file in outputs/ left out …). From
    phase `ready` on, in a run on several nodes: `ports` are free here and reserved for this attempt, and
    `versions` lists the software that all nodes must agree on ("python", "torch", "openmpi" … -> version).
    `changed_inputs`: names of inputs whose files here are not exactly those of their version."""

    run: str
    attempt: int
    phase: Phase
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
    changed_inputs: tuple[str, ...] = ()

    def without_growing_logs(self) -> AttemptFact:
        """Returns the fact without the sizes of its logs, which change all the time until the attempt is
        done."""
        # At the end the sizes are final, and the hub needs them to know that it has all bytes.
        return self if self.phase is Phase.DONE else replace(self, logs={})


@dataclass(frozen=True)
class Report:
    """All facts of a node. `agent`: random id of this agent process; `sequence` counts its reports from 1.

    `living`: (run, attempt) of every attempt on this node that is not settled, in each report. `samples`: the
    numbers of every second since the last report; lost ones are not sent again. `buckets` and `events`: those
    that no Ack has confirmed yet, a bounded number of the oldest."""

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
        # Dataclasses become dictionaries and tuples stay tuples, which msgpack writes as lists.
        return {"version": VERSION, **asdict(self)}

    @classmethod
    def from_wire(cls, data: Any) -> Report:
        """Returns the report in decoded `data`. Raises WireError for anything that is not a report."""
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
        # Everything that `int`, `float`, unpacking and calls raise for wrong data; int(inf) raises
        # OverflowError, and deeply nested lists RecursionError.
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            # The error repeats what was sent, and that may be megabytes.
            raise WireError(f"not a report: {type(error).__name__}: {str(error)[:MAX_QUOTED]}") from error


@dataclass(frozen=True)
class StopOrder:
    """An order to end an attempt: SIGTERM, and SIGKILL after `grace_s` seconds. `why`: a StopReason, as plain
    text because a newer hub may know more of them."""

    run: str
    attempt: int
    grace_s: int
    why: str


@dataclass(frozen=True)
class Ack:
    """The hub's answer to a report. `offsets`: the next byte that the hub expects of every log in the report,
    as (run, attempt, name, offset).

    `start`: attempts placed here that wait for a claim: the first claim, or, on a node that is ready, the one
    that returns the final order (in case a wake-up was lost). `stop`: attempts to end. `daemons`: (run,
    attempt, argv) of each MPI daemon to start here. `settled`: attempts whose whole outcome the hub knows;
    the node may forget and later delete them. `interval_s`: seconds until the next report if nothing happens.
    `buckets_until`: every bucket that ends at or before this moment (Unix seconds by the node's clock) is
    stored and need not be sent again; `events_until`: the same for events, by serial number. `is_watched`:
    somebody looks at this node at present. `checkpoints`: (run, attempt, number, name) of each checkpoint of
    which the hub waits for this node's part. `upgrade`: the number of the order to run another version of the
    node program that the node is to fetch, 0 = there is none."""

    offsets: tuple[tuple[str, int, str, int], ...] = ()
    start: tuple[tuple[str, int], ...] = ()
    stop: tuple[StopOrder, ...] = ()
    settled: tuple[tuple[str, int], ...] = ()
    daemons: tuple[tuple[str, int, tuple[str, ...]], ...] = ()
    interval_s: float = 5.0
    buckets_until: int = 0
    events_until: int = 0
    is_watched: bool = False
    checkpoints: tuple[tuple[str, int, int, str], ...] = ()
    upgrade: int = 0

    def to_wire(self) -> dict[str, Any]:
        return {"version": VERSION, **asdict(self)}

    @classmethod
    def from_wire(cls, data: Any) -> Ack:
        """Returns the ack in decoded `data`; raises WireError for anything else. Run ids and attempts are
        passed on unchecked: the node must check each before it uses one."""
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
                # Absent in the answers of older hubs.
                checkpoints=tuple((r, a, int(n), str(name)) for r, a, n, name in data.get("checkpoints", ())),
                upgrade=int(data.get("upgrade", 0)),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise WireError(f"not an ack: {error!r}") from error


def _few(data: Mapping[str, Any], name: str, most: int) -> Sequence[Any]:
    items = data[name]
    if not isinstance(items, list) or len(items) > most:
        raise WireError(f"{name} must be a list of at most {most:,}")
    return items


def _text(value: Any) -> str:
    # Not str(value): the text of a deeply nested list may be many times as large as the report.
    if not isinstance(value, str):
        raise WireError(f"a text is {type(value).__name__}, not str")
    return value


def _blocks(items: Any) -> tuple[Block, ...]:
    blocks, remaining = [], MAX_BLOCK_STEPS
    # Counted over all blocks: a report of many small blocks would otherwise bypass the limit of each.
    for item in items:
        block = block_of(item)
        remaining -= block.steps
        if remaining < 0:
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
            "phase": Phase(data["phase"]),
            "phase_at": {_text(phase): float(at) for phase, at in data["phase_at"].items()},
            "logs": {_text(name): int(size) for name, size in data["logs"].items()},
            "members": tuple(
                read(MemberFact, {**item, "state": RankState(item["state"])}) for item in data["members"]
            ),
            "outputs": tuple(read(OutputFile, item) for item in data["outputs"]),
            "warnings": tuple(_text(warning) for warning in data["warnings"]),
            "ports": tuple(int(port) for port in data["ports"]),
            "versions": {_text(name): _text(version) for name, version in data["versions"].items()},
            "daemons": tuple(
                DaemonCall(_text(call["host"]), tuple(_text(item) for item in call["argv"]))
                for call in data["daemons"]
            ),
            # Absent in the reports of older agents.
            "changed_inputs": tuple(_text(name) for name in data.get("changed_inputs", ())),
        },
    )


def _event(data: Mapping[str, Any]) -> GpuEvent:
    event = read(GpuEvent, data)
    if event.kind not in EVENT_KINDS:
        raise WireError(f"the kind of an event must be one of {', '.join(EVENT_KINDS)}")
    return event
