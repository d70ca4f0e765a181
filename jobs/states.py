"""States of runs and their members, allowed transitions, and reasons. Pure."""

from __future__ import annotations

from enum import StrEnum


class RunKind(StrEnum):
    """JOB: submitted here, with a spec and attempts on nodes. EXTERNAL: logged by a client, which sets its
    state."""

    JOB = "job"
    EXTERNAL = "external"


class RunState(StrEnum):
    QUEUED = "Queued"
    PROVISIONING = "Provisioning"
    PREPARING = "Preparing"
    RUNNING = "Running"
    FINALIZING = "Finalizing"
    CANCEL_REQUESTED = "CancelRequested"
    COMPLETED = "Completed"
    FAILED = "Failed"
    CANCELED = "Canceled"


FINAL = frozenset({RunState.COMPLETED, RunState.FAILED, RunState.CANCELED})
ACTIVE = frozenset(RunState) - FINAL
WAITING = frozenset({RunState.QUEUED, RunState.PROVISIONING, RunState.PREPARING})

_S = RunState
# From -> allowed to. Back to Queued = a retry: a new attempt of the same run.
TRANSITIONS: dict[RunState, frozenset[RunState]] = {
    _S.QUEUED: frozenset({_S.PROVISIONING, _S.CANCEL_REQUESTED, _S.CANCELED, _S.FAILED}),
    _S.PROVISIONING: frozenset({_S.PREPARING, _S.QUEUED, _S.CANCEL_REQUESTED, _S.CANCELED, _S.FAILED}),
    _S.PREPARING: frozenset({_S.RUNNING, _S.FINALIZING, _S.QUEUED, _S.CANCEL_REQUESTED, _S.FAILED}),
    _S.RUNNING: frozenset({_S.FINALIZING, _S.QUEUED, _S.CANCEL_REQUESTED, _S.FAILED}),
    _S.FINALIZING: frozenset({_S.COMPLETED, _S.QUEUED, _S.CANCEL_REQUESTED, _S.FAILED}),
    _S.CANCEL_REQUESTED: frozenset({_S.CANCELED, _S.FAILED}),
    _S.COMPLETED: frozenset(),
    _S.FAILED: frozenset(),
    _S.CANCELED: frozenset(),
}


class MemberState(StrEnum):
    WAITING = "Waiting"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    STOPPED = "Stopped"
    LOST = "Lost"


MEMBER_FINAL = frozenset({MemberState.SUCCEEDED, MemberState.FAILED, MemberState.STOPPED, MemberState.LOST})


class Reason(StrEnum):
    """Why a run is in its state. Each reason has a final state and a sentence for users."""

    NONE = ""
    COMPLETED = "completed"
    EXITED = "exited"
    SIGNALED = "signaled"
    OUT_OF_MEMORY = "out_of_memory"
    CANCELED = "canceled"
    TIMED_OUT = "timed_out"
    LIMIT_OUTSIDE = "limit_outside"
    NODE_LOST = "node_lost"
    NODE_REVOKED = "node_revoked"
    PREEMPTED = "preempted"
    PREEMPTED_BY_RUN = "preempted_by_run"
    ENDED_OUTSIDE = "ended_outside"
    TAKEN_OUTSIDE = "taken_outside"
    NEVER_STARTED = "never_started"
    NEVER_READY = "never_ready"
    MISMATCH = "mismatch"
    ENVIRONMENT_FAILED = "environment_failed"
    SNAPSHOT_FAILED = "snapshot_failed"
    DATA_FAILED = "data_failed"
    LAUNCH_FAILED = "launch_failed"
    UPLOAD_FAILED = "upload_failed"
    DOES_NOT_FIT = "does_not_fit"
    NOT_FITTING_YET = "not_fitting_yet"
    ORPHANED = "orphaned"
    DISK_LIMIT = "disk_limit"
    DISK_FULL = "disk_full"
    NODE_ERROR = "node_error"
    INTERNAL = "internal"

    @property
    def final_state(self) -> RunState:
        if self is Reason.COMPLETED:
            return RunState.COMPLETED
        return RunState.CANCELED if self is Reason.CANCELED else RunState.FAILED

    def sentence(self, **facts: object) -> str:
        """Returns the sentence with `facts` filled in. Raises KeyError if one is missing."""
        return SENTENCES[self].format(**facts)


SENTENCES: dict[Reason, str] = {
    Reason.NONE: "",
    Reason.COMPLETED: "All ranks finished.",
    Reason.EXITED: "Rank {rank} exited with code {code} on {node}.",
    Reason.SIGNALED: "Rank {rank} was killed by {signal} on {node}.",
    Reason.OUT_OF_MEMORY: "Rank {rank} was killed for lack of memory on {node}.",
    Reason.CANCELED: "Canceled by {who}.",
    Reason.TIMED_OUT: "Stopped after its time limit of {seconds} s.",
    Reason.LIMIT_OUTSIDE: (
        "Stopped shortly before the time limit of its job in the cluster's queue, which the run had not set."
    ),
    Reason.NODE_LOST: (
        "Node {node} has not reported for {seconds} s; its resources stay reserved "
        "until it confirms that the run's processes have ended."
    ),
    Reason.NODE_REVOKED: "Node {node} was disconnected: its token has been revoked.",
    Reason.PREEMPTED: "The low-priority node {node} has disappeared.",
    Reason.PREEMPTED_BY_RUN: "Preempted: {who} of higher priority needed its resources.",
    Reason.ENDED_OUTSIDE: "{detail}",
    Reason.TAKEN_OUTSIDE: "{detail}",
    Reason.NEVER_STARTED: "Node {node} did not start the run within {seconds} s.",
    Reason.NEVER_READY: "Node {node} was not ready within {seconds} s: it {detail}.",
    Reason.MISMATCH: "The nodes of the run have different software: {detail}.",
    Reason.ENVIRONMENT_FAILED: "The environment could not be built on {node}: {detail}",
    Reason.SNAPSHOT_FAILED: "The source could not be unpacked on {node}: {detail}",
    Reason.DATA_FAILED: "The run's data cannot be read. {detail}",
    Reason.LAUNCH_FAILED: "The processes could not be started on {node}: {detail}",
    Reason.UPLOAD_FAILED: "The outputs could not be saved from {node}: {detail}",
    Reason.DOES_NOT_FIT: "{detail}",
    Reason.NOT_FITTING_YET: "{detail}",
    Reason.ORPHANED: "Node {node} no longer holds the run's processes.",
    Reason.DISK_LIMIT: "{detail}",
    Reason.DISK_FULL: "{detail}",
    Reason.NODE_ERROR: "The node {node} could not run it: {detail}",
    Reason.INTERNAL: (
        "TrainHub itself failed; the operator finds the traceback in the server log under {detail}."
    ),
}

# The run took longer than it may.
TIME_LIMITS = frozenset({Reason.TIMED_OUT, Reason.LIMIT_OUTSIDE})


class DataKind(StrEnum):
    """What retention rules remove of a run. LOGS: of its processes. OUTPUTS: files that the hub stores for
    it, its checkpoints and logged models among them. METRICS: the points of its curves, its histograms and
    TensorBoard's files. TELEMETRY: the curves of its GPUs and machines."""

    LOGS = "logs"
    OUTPUTS = "outputs"
    METRICS = "metrics"
    TELEMETRY = "telemetry"

    @property
    def label(self) -> str:
        return {
            DataKind.LOGS: "Logs",
            DataKind.OUTPUTS: "Outputs and checkpoints",
            DataKind.METRICS: "Metric points",
            DataKind.TELEMETRY: "Telemetry",
        }[self]

    @property
    def noun(self) -> str:
        """What was removed, in a sentence."""
        return "outputs" if self is DataKind.OUTPUTS else self.label.lower()
