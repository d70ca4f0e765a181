"""Remedies by the run's reason, for failures that no rank caused, and the log that explains each. Pure."""

from __future__ import annotations

from jobs.states import Reason, RunState
from trainhub_launch.log_names import ENVIRONMENT_LOG, PREPARATION_LOG

LOG_OF_REASON: dict[str, str] = {
    Reason.ENVIRONMENT_FAILED: ENVIRONMENT_LOG,
    Reason.SNAPSHOT_FAILED: PREPARATION_LOG,
    Reason.DATA_FAILED: PREPARATION_LOG,
    Reason.LAUNCH_FAILED: PREPARATION_LOG,
}
# Reasons that name the rank that failed first by time; the cause may correct the rank.
RANK_REASONS = frozenset({Reason.EXITED, Reason.SIGNALED, Reason.OUT_OF_MEMORY})
# States in which failed ranks need no explanation.
WITHOUT_CAUSE = (RunState.COMPLETED, RunState.CANCELED, RunState.CANCEL_REQUESTED)
RESUME = "If it has saved checkpoints (TRAINHUB_CHECKPOINT_DIR), the tab Checkpoints resumes it from one."
REMEDIES: dict[str, str] = {
    Reason.EXITED: "Correct the script and clone the run; everything else stays the same.",
    Reason.SIGNALED: (
        "The signal came from the program itself or from outside TrainHub; the log's last lines may say why."
    ),
    Reason.OUT_OF_MEMORY: (
        "Use fewer processes a node, fewer data loader workers or a smaller batch, or a "
        "node with more memory."
    ),
    Reason.TIMED_OUT: f"Clone the run with a longer time limit. {RESUME}",
    Reason.LIMIT_OUTSIDE: f"Clone the run and set a time limit (`limits.timeout_s`). {RESUME}",
    Reason.ENDED_OUTSIDE: "Change what the sentence names, and clone the run.",
    Reason.TAKEN_OUTSIDE: (
        f"The run has used up its free restarts; clone it, if possible with a higher priority there. {RESUME}"
    ),
    Reason.NODE_LOST: (
        "Check that the machine and its agent are running; when the node reports again, clone the run. "
        f"{RESUME}"
    ),
    Reason.NODE_REVOKED: "Join the node again if it is to be used, then clone the run.",
    Reason.PREEMPTED: (
        "The run has used up its free restarts; clone it, if possible on nodes without low priority. "
        f"{RESUME}"
    ),
    Reason.PREEMPTED_BY_RUN: "The run is queued again; only runs with a priority below 0 are preempted.",
    Reason.NEVER_STARTED: "Check that the node's agent runs and reaches the broker, then clone the run.",
    Reason.NEVER_READY: (
        "See how far the node got in its build and preparation logs, correct the problem and clone the run."
    ),
    Reason.MISMATCH: (
        "Use an environment with fixed versions, or an interpreter that is the same on all nodes, "
        "then clone the run."
    ),
    Reason.ENVIRONMENT_FAILED: (
        "The build log names the package that could not be installed; correct the environment and clone "
        "the run."
    ),
    Reason.SNAPSHOT_FAILED: "Check the node's free disk space, then clone the run.",
    Reason.DATA_FAILED: (
        "Correct that, then clone the run. The test on the page of a datastore tells which nodes can read it."
    ),
    Reason.LAUNCH_FAILED: "The preparation log shows what was tried.",
    Reason.UPLOAD_FAILED: "The logs are complete; the outputs are still in the run's folder on the node.",
    Reason.DOES_NOT_FIT: "Ask for fewer GPUs or processes, or choose another cluster, in a clone of the run.",
    Reason.ORPHANED: f"The node has probably restarted; clone the run. {RESUME}",
    Reason.DISK_LIMIT: (
        "Clone the run with more disk per node (resources.disk), or have it keep fewer checkpoints and "
        "temporary files."
    ),
    Reason.DISK_FULL: (
        "Free space on the node, or clone the run with as much disk per node (resources.disk) as it needs: "
        "then it starts only where that is free."
    ),
    Reason.NODE_ERROR: "This is not the script's fault. Check the node, then clone the run.",
    Reason.INTERNAL: (
        "This is not the script's fault. Clone the run, and tell the operator if it happens again."
    ),
}
