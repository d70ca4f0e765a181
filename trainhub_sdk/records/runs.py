"""Runs, and what belongs to one. Written by packaging/make_sdk_records.py."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from trainhub_sdk.records.record import Record


@dataclass
class OtherRank(Record):
    rank: int = 0
    node: str = ""
    why: str = ""
    """A short reason why this rank ended."""


@dataclass
class Cause(Record):
    line: str = ""
    """The cause in one line."""
    rank: int | None = None
    """The rank that failed first; null if no rank caused the failure, but a node, the environment or the
    time limit."""
    local_rank: int | None = None
    node: str = ""
    child: int | None = None
    """The number that a launcher such as torchrun gave to the process that failed first; null if
    unknown."""
    sentence: str = ""
    message: str = ""
    """The exception, if there is one; otherwise the title of the known failure, or the sentence."""
    exception: str = ""
    """The exception's type and message, or the log line that names the error; empty if there is
    neither."""
    began: str = ""
    """The earlier exception that led to this one, if it is a known failure; otherwise empty."""
    kind: str = ""
    """The code of a known failure (see docs/failures.md); empty if the failure is not a known one."""
    title: str = ""
    meaning: str = ""
    remedy: str = ""
    """What to do about the failure."""
    action: str = ""
    """What the page at `link` does about it, such as `Add pandas`; empty if there is none."""
    link: str = ""
    """The path of a form on this hub that makes a version of the run's environment with the remedy; empty
    if there is none."""
    log: str = ""
    """The name of the log that is quoted; empty if none is."""
    offset: int = 0
    """The byte offset in that log at which the quoted lines begin."""
    quote: str = ""
    at: str | None = None
    """When the failed rank or the run ended, by the hub's clock; null if unknown."""
    is_certain: bool = False
    """False if no rank reported an error of its own. This rank was then only the first to lose the
    others."""
    ranks: list[int] = field(default_factory=list)
    """All ranks that failed with this error, if several did; otherwise empty."""
    others: list[OtherRank] = field(default_factory=list)
    """The other ranks that ended because of the same failure."""


@dataclass
class Finding(Record):
    level: str = ""
    field: str = ""
    """The JSON path of the field in the spec."""
    message: str = ""
    action: str = ""
    """What the page at `link` does about it, such as `Add pandas`; empty if there is none."""
    link: str = ""
    """The path of a form on this hub that is filled in with the remedy; empty if there is none."""


@dataclass
class QueueStanding(Record):
    place: int | None = None
    """From 1, of all workspaces; null: too new."""
    total: int = 0
    """How many runs wait for the cluster."""
    sentence: str = ""
    """The place, and what the workspace has used of the cluster compared with its share."""


@dataclass
class RunAttempt(Record):
    number: int = 0
    nodes: list[str] = field(default_factory=list)
    """The names of the nodes, ordered by node rank; the first is the head node."""
    plan: dict[str, Any] | None = None
    """The plan that was executed; null until a node has claimed the attempt."""
    warnings: list[str] = field(default_factory=list)
    created_at: str = ""
    ended_at: str | None = None


@dataclass
class RemovedData(Record):
    kind: str = ""
    """logs, outputs, metrics (their points) or telemetry."""
    removed_at: str = ""
    size_bytes: int = 0
    """How much it was."""
    sentence: str = ""
    """The same for people."""


@dataclass
class RunRecord(Record):
    id: str = ""
    """The run's id: 32 hexadecimal digits, globally unique."""
    number: int = 0
    """The run's number, unique in its workspace. URLs accept it in place of the id."""
    display_name: str = ""
    experiment: str = ""
    kind: str = ""
    """`job`: started by TrainHub. `external`: logged by a program that TrainHub did not start; it has no
    spec and no attempts."""
    parent: str | None = None
    """The id of the parent run: the job whose process logged this run, or the run that this run is nested
    in. Null if it has none."""
    framework: str = ""
    """The name of the training framework; empty for an external run."""
    cluster: str = ""
    """The name of the requested cluster; empty for an external run."""
    tags: dict[str, Any] = field(default_factory=dict)
    priority: int = 0
    """The scheduling priority; waiting runs with a higher value are placed first."""
    state: str = ""
    reason: str = ""
    """A code for programs that explains the state; empty if there is nothing to explain."""
    sentence: str = ""
    """The reason as a sentence for people."""
    cause_line: str = ""
    """The cause of the failure in one line; empty if the run did not fail or the cause is unknown."""
    attempt: int = 0
    """The number of the latest attempt, starting at 1; 0 before the first attempt."""
    created_by: str | None = None
    created_at: str = ""
    started_at: str | None = None
    finished_at: str | None = None
    state_since: str = ""
    cloned_from: str | None = None
    """The id of the run whose spec this run was started from; null if there is none."""
    spec: Any = None
    """The RunSpec, with its source stored as a snapshot."""
    preview: dict[str, Any] | None = None
    """The plan at the time of submission; null if there is none."""
    cause: Cause | None = None
    """The cause of the failure of the latest attempt; null unless the attempt has failed or is
    failing."""
    queue: QueueStanding | None = None
    """The place in the queue of the cluster; null unless the run waits there."""
    attempts: list[RunAttempt] = field(default_factory=list)
    members: list[dict[str, Any]] = field(default_factory=list)
    removed: list[RemovedData] = field(default_factory=list)
    """What retention rules have removed of the run."""


@dataclass
class RunEvent(Record):
    id: int = 0
    at: str = ""
    attempt: int = 0
    from_state: str = ""
    to_state: str = ""
    """The state after the event; empty if the event did not change the state."""
    reason: str = ""
    message: str = ""
    actor: str = ""
    """Who caused the event: a user name, 'node NAME', or 'hub'."""


@dataclass
class RunLog(Record):
    name: str = ""
    rank: int | None = None
    """The rank whose output the log contains; null for a log of no rank, such as that of the
    preparation."""
    size: int = 0
    """The number of bytes that the hub has received."""
    complete: bool = False
    """True if the log is final and all its bytes have been received."""
    url: str = ""
    """The address of the log's content. It takes `offset`, `limit` and `attempt`, or `download=1`."""


@dataclass
class OutputFile(Record):
    path: str = ""
    size_bytes: int = 0
    sha256: str = ""
    place: str = ""
    """Where the file lies if that is in a datastore; its size and SHA-256 are then as the node said.
    Empty: on the hub."""
    url: str = ""
    """The address of the file's content; supports Range requests."""


@dataclass
class RunCheckpoint(Record):
    number: int = 0
    """Counts the checkpoints of the run."""
    name: str = ""
    """Of the file or folder below the folder of checkpoints."""
    state: str = ""
    sign: str = ""
    """What showed that it is complete; empty: nothing did."""
    attempt: int = 0
    """Which attempt saved it; 0: it comes from another run, `origin`."""
    origin: str = ""
    detail: str = ""
    """Why it is torn."""
    size_bytes: int = 0
    files: int = 0
    """How many files it has."""
    place: str = ""
    """The folder of a datastore in which it lies; empty: on the hub."""
    created_at: str = ""
    finished_at: str | None = None


@dataclass
class SpecNote(Record):
    line: int | None = None
    """Of the file that was read, from 1; null if there is none."""
    field: str = ""
    what: str = ""
    message: str = ""


@dataclass
class SpecExport(Record):
    files: dict[str, Any] = field(default_factory=dict)
    """The text of each file by its name."""
    notes: list[SpecNote] = field(default_factory=list)
    """What the format cannot hold, or holds in another way."""


@dataclass
class SpecImport(Record):
    spec: dict[str, Any] = field(default_factory=dict)
    """A RunSpec; without `source` if the file names no code."""
    notes: list[SpecNote] = field(default_factory=list)
    """What became of each line that says something."""


@dataclass
class ExperimentSummary(Record):
    id: int = 0
    name: str = ""
    run_count: int = 0
    """How many runs it has, with archived and nested ones, without deleted ones."""
    active_run_count: int = 0
    """How many of these have not ended."""
    created_at: str = ""
    last_run_at: str | None = None
    """When the latest of these runs was submitted; null if there is none."""
