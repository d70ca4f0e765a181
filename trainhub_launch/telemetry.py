"""Telemetry on the wire: blocks of samples and of buckets, processes on GPUs, and events of GPUs."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainhub_launch.errors import WireError
from trainhub_launch.json_types import JsonValue
from trainhub_launch.metrics import GPU_KEYS, HOST_KEYS

SAMPLE_S = 1
BUCKET_S = 10
# The subject of the machine's own numbers; every other subject is the UUID of a GPU.
HOST = ""
# Per node: its GPUs and their MIG devices.
MAX_SUBJECTS = 512
MAX_STEPS = 3600
ITEM_BYTES = 4
# Of the ranks on one node. Further ones are left out.
MAX_RANK_READS = 512
UNKNOWN = float("nan")


@dataclass(frozen=True)
class Block:
    """Numbers of `subjects` at `steps` points in time, `step_s` seconds apart, from `start` on (Unix seconds
    by the node's clock, a multiple of `step_s`).

    `values` is a matrix [step][subject][metric] of little-endian float32; an unknown value is NaN, never 0.
    In a block of buckets a value is the mean over its bucket, and `peaks`, of the same shape, holds the
    maxima; samples have no peaks. The metrics of the host and of GPUs differ, so they have separate blocks:
    subjects are either (HOST,) or UUIDs of GPUs."""

    start: int
    step_s: int
    subjects: tuple[str, ...]
    metrics: tuple[str, ...]
    values: bytes
    peaks: bytes = b""

    @property
    def steps(self) -> int:
        # `check` refuses blocks without subjects or metrics, so the divisor is not 0.
        return len(self.values) // (ITEM_BYTES * len(self.subjects) * len(self.metrics))

    @property
    def end(self) -> int:
        """The time at which the block that follows starts, in Unix seconds."""
        return self.start + self.steps * self.step_s

    @property
    def is_host(self) -> bool:
        return self.subjects == (HOST,)


@dataclass(frozen=True)
class GpuProcess:
    """A process that uses a GPU or its memory. `run`, `attempt` and `rank` are set if it belongs to a run of
    TrainHub; rank None = a launcher or a helper of the run. Other values are None if the device does not
    report them."""

    pid: int
    name: str
    user: str = ""
    memory_bytes: int | None = None
    sm_pct: float | None = None
    run: str = ""
    attempt: int = 0
    rank: int | None = None


@dataclass(frozen=True)
class RankRead:
    """How fast a rank reads, in bytes a second, with the processes that it has started: `calls_bytes_s` by
    calls, also of what is in memory or comes from another process; `storage_bytes_s` from disks and file
    servers."""

    run: str
    attempt: int
    rank: int
    calls_bytes_s: float
    storage_bytes_s: float


@dataclass(frozen=True)
class GpuEvent:
    """A single event of a GPU. `kind`: xid, lost, back, ecc, nvml_lost or nvml_back. `serial` counts an
    agent's events from 1. `gpu` is the UUID, "" for an event of the library as a whole; `code` is the number
    of an XID, otherwise 0."""

    serial: int
    at: float
    kind: str
    gpu: str
    code: int = 0
    detail: str = ""


EVENT_KINDS = ("xid", "lost", "back", "ecc", "nvml_lost", "nvml_back")


def pack(rows: Sequence[Sequence[Mapping[str, float]]], metrics: Sequence[str]) -> bytes:
    """Returns the matrix of a block from rows[step][subject][metric]; an absent value becomes NaN."""
    return array(
        "f", [row.get(metric, UNKNOWN) for step in rows for row in step for metric in metrics]
    ).tobytes()


def unpack(values: bytes) -> array[float]:
    """Returns all numbers of a matrix, in order."""
    numbers = array("f")
    numbers.frombytes(values)
    return numbers


def check(block: Block) -> None:
    """Raises WireError if the parts of a block contradict each other or exceed a limit."""
    if not 1 <= len(block.subjects) <= MAX_SUBJECTS or len(set(block.subjects)) != len(block.subjects):
        raise WireError(
            f"a block must have 1 to {MAX_SUBJECTS} different subjects, not {len(block.subjects)}"
        )
    permitted = HOST_KEYS if block.is_host else GPU_KEYS
    if (
        not block.metrics
        or len(set(block.metrics)) != len(block.metrics)
        or not set(block.metrics) <= permitted.keys()
    ):
        raise WireError("a block's metrics must be different ones that the hub knows")
    # NVML's longest UUID has 96 bytes, and so has the hub's column.
    if any(len(subject) > 96 or "\0" in subject for subject in block.subjects) or (
        HOST in block.subjects and len(block.subjects) > 1
    ):
        raise WireError("a block's subjects must be UUIDs of GPUs, or the host alone")
    if block.step_s not in (SAMPLE_S, BUCKET_S) or block.start < 0 or block.start % block.step_s:
        raise WireError(f"a block must begin at a multiple of its step, which is {SAMPLE_S} or {BUCKET_S} s")
    row = ITEM_BYTES * len(block.subjects) * len(block.metrics)
    if not block.values or len(block.values) % row or block.steps > MAX_STEPS:
        raise WireError(
            f"a block of {len(block.values)} bytes is no matrix of 1 to {MAX_STEPS} rows of {row} bytes"
        )
    if len(block.peaks) != (len(block.values) if block.step_s == BUCKET_S else 0):
        raise WireError("buckets must have as many peaks as values, and samples none")


def block_of(data: Mapping[str, JsonValue]) -> Block:
    """Returns the block in decoded `data`, checked. Raises WireError or KeyError."""
    block = Block(
        start=_whole(data["start"]),
        step_s=_whole(data["step_s"]),
        subjects=_texts(data["subjects"]),
        metrics=_texts(data["metrics"]),
        values=_bytes(data["values"]),
        peaks=_bytes(data["peaks"]),
    )
    check(block)
    return block


def _texts(values: object) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise WireError("a block's subjects and metrics must be lists of texts")
    return tuple(values)


def _whole(value: object) -> int:
    # `bool` is a subclass of `int`.
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**40:
        raise WireError("a block's start and step must be whole numbers")
    return value


def _bytes(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise WireError("a block's numbers must be bytes")
    return value
