"""What a socket can receive. Contents are hints: files and rows are the truth, and every message may be
lost."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

MAX_LOG_DATA = 16 * 1024
"""Most log bytes that travel in a message; more is fetched over HTTP."""


class RunChanged(TypedDict):
    type: Literal["run.changed"]
    run: str
    number: int
    state: str
    reason: str
    attempt: int


class LogAppended(TypedDict):
    """`size` bytes were appended at `offset`; `data` is their base64, absent when they are too many."""

    type: Literal["log.appended"]
    run: str
    attempt: int
    name: str
    offset: int
    size: int
    data: NotRequired[str]


class MemberChanged(TypedDict):
    type: Literal["member.changed"]
    run: str
    attempt: int
    rank: int
    state: str


class EventAdded(TypedDict):
    type: Literal["event.added"]
    run: str


class NodeChanged(TypedDict):
    type: Literal["node.changed"]
    node: str


class HostSamples(TypedDict):
    """`values`: per step the number of each metric, None = not known."""

    metrics: list[str]
    values: list[list[float | None]]


class GpuSamples(TypedDict):
    """`subjects`: UUIDs. `values`: per step, per subject, the number of each metric, None = not known."""

    subjects: list[str]
    metrics: list[str]
    values: list[list[list[float | None]]]


class TelemetrySampled(TypedDict):
    """What a node measured from `start` on (Unix seconds by the hub's clock), every `step_s`. Only while
    somebody looks, never kept as it is, and not sent again: what was missed is read over HTTP."""

    type: Literal["telemetry.sampled"]
    node: str
    start: int
    step_s: int
    host: NotRequired[HostSamples]
    gpus: NotRequired[GpuSamples]


class AlertChanged(TypedDict):
    """An alert of this node has fired or cleared."""

    type: Literal["alert.changed"]
    node: str


class MetricsAdded(TypedDict):
    """Points of these curves were stored; which, is fetched over HTTP. At most some twice a second for each
    run."""

    type: Literal["metrics.added"]
    run: str
    keys: list[str]


class ChildBegun(TypedDict):
    """A process of this run has opened the run `child` besides."""

    type: Literal["child.begun"]
    run: str
    child: str


class ArtifactsChanged(TypedDict):
    """Files of this run were stored or deleted. At most once a second for each run."""

    type: Literal["artifacts.changed"]
    run: str


class Hint(TypedDict):
    """You missed something: fetch what you show."""

    type: Literal["hint"]


class AccessChanged(TypedDict):
    """Between the hub's own processes; no browser ever hears it."""

    type: Literal["access.changed"]


Message = (
    AccessChanged
    | AlertChanged
    | ArtifactsChanged
    | ChildBegun
    | RunChanged
    | LogAppended
    | MemberChanged
    | EventAdded
    | MetricsAdded
    | NodeChanged
    | TelemetrySampled
    | Hint
)
