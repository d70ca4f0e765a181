"""The messages that a socket can receive. They are hints: files and rows are authoritative, and any message
may be lost."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

# The most log bytes that a message carries. Pages fetch larger ones over HTTP, so that a run that logs fast
# does not fill the bounded queues of its watchers.
MAX_LOG_DATA = 16 * 1024


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


class BuildChanged(TypedDict):
    """A build of an environment has changed its state. Sent to the topic that a run of this id would have."""

    type: Literal["build.changed"]
    build: str
    state: str


class NodeChanged(TypedDict):
    type: Literal["node.changed"]
    node: str


class HostSamples(TypedDict):
    """Samples of a machine. `values`: for each step the number of each metric, None = unknown."""

    metrics: list[str]
    values: list[list[float | None]]


class GpuSamples(TypedDict):
    """Samples of GPUs. `subjects`: UUIDs. `values`: for each step and subject the number of each metric, None
    = unknown."""

    subjects: list[str]
    metrics: list[str]
    values: list[list[list[float | None]]]


class TelemetrySampled(TypedDict):
    """Samples of a node from `start` on (Unix seconds by the hub's clock), one every `step_s`. They are sent
    once, and only while somebody watches; a page reads what it has missed over HTTP."""

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
    """Points of these curves were stored; pages fetch them over HTTP. Sent about twice a second for each run
    at most."""

    type: Literal["metrics.added"]
    run: str
    keys: list[str]


class ChildStarted(TypedDict):
    """A process of this run has created the run `child`."""

    type: Literal["child.begun"]
    run: str
    child: str


class ArtifactsChanged(TypedDict):
    """Files of this run were stored or deleted. At most once a second for each run."""

    type: Literal["artifacts.changed"]
    run: str


class Hint(TypedDict):
    """Messages were lost: the page fetches again what it shows."""

    type: Literal["hint"]


class AccessChanged(TypedDict):
    """The access of a person has changed. It travels between the processes of the hub and never to a
    browser."""

    type: Literal["access.changed"]


Message = (
    AccessChanged
    | AlertChanged
    | ArtifactsChanged
    | BuildChanged
    | ChildStarted
    | RunChanged
    | LogAppended
    | MemberChanged
    | EventAdded
    | MetricsAdded
    | NodeChanged
    | TelemetrySampled
    | Hint
)
