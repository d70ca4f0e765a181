"""What to do where no rank is the cause, by the run's reason; and which log tells more. Pure."""

from __future__ import annotations

from jobs.states import Reason, RunState

BUILD_LOG = "20_environment_build_log.txt"
PREPARATION_LOG = "55_preparation_log.txt"
LOG_OF_REASON: dict[str, str] = {
    Reason.ENVIRONMENT_FAILED: BUILD_LOG,
    Reason.SNAPSHOT_FAILED: PREPARATION_LOG,
    Reason.LAUNCH_FAILED: PREPARATION_LOG,
}
RANK_REASONS = frozenset({Reason.EXITED, Reason.SIGNALED, Reason.OUT_OF_MEMORY})
"""Reasons that name the rank that failed first by time; the cause may know better."""
WITHOUT_CAUSE = (RunState.COMPLETED, RunState.CANCELED, RunState.CANCEL_REQUESTED)
"""Where nobody asks why a rank failed."""
REMEDIES: dict[str, str] = {
    Reason.EXITED: "Correct the script and clone the run; everything else is kept as it was.",
    Reason.SIGNALED: (
        "The signal came from the program itself or from outside TrainHub; the log's last lines may say why."
    ),
    Reason.OUT_OF_MEMORY: (
        "Use fewer processes a node, fewer data loader workers or a smaller batch, or a "
        "node with more memory."
    ),
    Reason.TIMED_OUT: (
        "Clone the run with a longer time limit, or save checkpoints into outputs/ and continue from them."
    ),
    Reason.NODE_LOST: (
        "Look whether the machine and its agent run; when the node reports again, clone the run."
    ),
    Reason.NODE_REVOKED: "Join the node again if it is to be used, then clone the run.",
    Reason.PREEMPTED: (
        "It began anew as often as it may; clone the run, on nodes that stay where there are such."
    ),
    Reason.NEVER_STARTED: "Look whether the node's agent runs and reaches the broker, then clone the run.",
    Reason.NEVER_READY: (
        "The node's build and preparation logs say how far it came; clone the run when it is able to go on."
    ),
    Reason.MISMATCH: (
        "Use an environment of fixed versions, or one interpreter that all nodes have alike, "
        "then clone the run."
    ),
    Reason.ENVIRONMENT_FAILED: (
        "The build log says which package could not be had; correct the environment and clone the run."
    ),
    Reason.SNAPSHOT_FAILED: "Look at the node's free disk, then clone the run.",
    Reason.LAUNCH_FAILED: "The preparation log says what was tried.",
    Reason.UPLOAD_FAILED: "The logs are complete; the outputs still lie in the run's folder on the node.",
    Reason.DOES_NOT_FIT: "Ask for fewer GPUs or processes, or choose another cluster, in a clone of the run.",
    Reason.ORPHANED: "The node was probably started anew; clone the run.",
    Reason.NODE_ERROR: "This is not the script's fault. Look at the node, then clone the run.",
    Reason.INTERNAL: (
        "This is not the script's fault. Clone the run, and tell the operator if it happens again."
    ),
}
