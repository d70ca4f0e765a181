"""Report (node -> hub) and Ack (hub -> node): the one road up.

Everything here is idempotent: a report says how things *are*, so repeating or losing one changes
nothing. `to_wire()` gives plain lists, dicts, numbers, str and bytes, for msgpack.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from itertools import chain
from typing import Any, TypeVar, cast

from trainhub_launch.errors import WireError

_T = TypeVar("_T")

VERSION = 2
MAX_CHUNK_BYTES = 4 * 1024 * 1024
"""Most bytes of one log in one report."""
MAX_REPORT_BYTES = 32 * 1024 * 1024
"""Most bytes of a whole encoded report; the hub refuses larger ones."""


@dataclass(frozen=True)
class GpuFact:
    """One device, by UUID; None = not supported by this device, never 0 for unknown."""

    uuid: str
    index: int
    name: str
    memory_bytes: int | None = None
    memory_used_bytes: int | None = None
    utilization_pct: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None


@dataclass(frozen=True)
class Interpreter:
    """A Python that runs can use as environment `system`."""

    path: str
    version: str


@dataclass(frozen=True)
class Heartbeat:
    """What the node is and how it does. `cores`, `slots`: see FreeNode. Bytes and percent."""

    agent_version: str
    hostname: str
    address: str
    interface: str
    cores: int
    slots: int
    memory_bytes: int
    memory_used_bytes: int
    cpu_pct: float
    disk_free_bytes: int
    gpus: tuple[GpuFact, ...] = ()
    interpreters: tuple[Interpreter, ...] = ()
    mpi: str = ""
    run_as: str = ""
    infiniband: bool = False
    boot_id: str = ""


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
    """

    agent: str
    sequence: int
    sent_at: float
    living: tuple[tuple[str, int], ...] = ()
    heartbeat: Heartbeat | None = None
    attempts: tuple[AttemptFact, ...] = ()
    logs: tuple[LogChunk, ...] = ()

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
                heartbeat=None if beat is None else _heartbeat(beat),
                attempts=tuple(_attempt(item) for item in data["attempts"]),
                logs=tuple(_read(LogChunk, item) for item in data["logs"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
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
    """

    offsets: tuple[tuple[str, int, str, int], ...] = ()
    start: tuple[tuple[str, int], ...] = ()
    stop: tuple[StopOrder, ...] = ()
    settled: tuple[tuple[str, int], ...] = ()
    daemons: tuple[tuple[str, int, tuple[str, ...]], ...] = ()
    interval_s: float = 5.0

    def to_wire(self) -> dict[str, Any]:
        return {"version": VERSION, **asdict(self)}

    @classmethod
    def from_wire(cls, data: Any) -> Ack:
        try:
            return cls(
                offsets=tuple((r, int(a), n, int(o)) for r, a, n, o in data["offsets"]),
                start=tuple((r, int(a)) for r, a in data["start"]),
                stop=tuple(_read(StopOrder, item) for item in data["stop"]),
                settled=tuple((r, int(a)) for r, a in data["settled"]),
                daemons=tuple((r, int(a), tuple(str(item) for item in argv)) for r, a, argv in data["daemons"]),
                interval_s=float(data["interval_s"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise WireError(f"not an ack: {error!r}") from error


def _heartbeat(data: Mapping[str, Any]) -> Heartbeat:
    return _read(
        Heartbeat,
        {
            **data,
            "gpus": tuple(_read(GpuFact, gpu) for gpu in data["gpus"]),
            "interpreters": tuple(_read(Interpreter, item) for item in data["interpreters"]),
        }
    )


def _attempt(data: Mapping[str, Any]) -> AttemptFact:
    if data["phase"] not in PHASES:
        raise WireError(f"unknown phase {data['phase']!r}")
    return _read(
        AttemptFact,
        {
            **data,
            "phase_at": {str(phase): float(at) for phase, at in data["phase_at"].items()},
            "logs": {str(name): int(size) for name, size in data["logs"].items()},
            "members": tuple(_read(MemberFact, item) for item in data["members"]),
            "outputs": tuple(_read(OutputFile, item) for item in data["outputs"]),
            "warnings": tuple(str(warning) for warning in data["warnings"]),
            "ports": tuple(int(port) for port in data["ports"]),
            "versions": {str(name): str(version) for name, version in data["versions"].items()},
            "daemons": tuple(
                DaemonCall(str(call["host"]), tuple(str(item) for item in call["argv"])) for call in data["daemons"]
            ),
        }
    )


_PLAIN: dict[str, tuple[type, ...]] = {
    "str": (str,), "int": (int,), "float": (int, float), "bytes": (bytes,), "bool": (bool,), "None": (type(None),),
}


def _read(kind: type[_T], data: Mapping[str, Any]) -> _T:
    """Build `kind`, refusing a plain field of another type: what follows puts these into paths, files and rows."""
    made = kind(**data)
    for spot in fields(cast("Any", kind)):
        allowed = [_PLAIN[name] for name in str(spot.type).split(" | ") if name in _PLAIN]
        value = getattr(made, spot.name)
        if allowed and not isinstance(value, tuple(chain(*allowed))):
            raise WireError(f"{kind.__name__}.{spot.name} is {type(value).__name__}, not {spot.type}")
    return made
