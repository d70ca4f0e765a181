"""Starts the child of an attempt, or records the end of an attempt that never had one."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from trainhub_launch.states import ErrorKind, Phase, StopReason
from trainhub_node import proc, records, run_secrets
from trainhub_node.attempts import attempt_list
from trainhub_node.bootstrap_command import AGENT_WRAPPER
from trainhub_node.rundir import RunDir
from trainhub_node.supervisor.variables import BASE


def start_child(folder: RunDir, secrets: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Starts the detached process that runs the attempt from here on. Marks in its environment identify
    it. It reads the values of secrets from its standard input, so that no file has them."""
    # Nothing else of the agent's environment: it may hold the node's token.
    env = {name: os.environ[name] for name in BASE if name in os.environ}
    env |= {"TRAINHUB_RUN_ID": folder.run, "TRAINHUB_ATTEMPT": str(folder.attempt)}
    stdin = run_secrets.as_file(secrets) if secrets else subprocess.DEVNULL
    try:
        with Path(folder.child_log).open("ab") as log_file:
            return subprocess.Popen(
                [*AGENT_WRAPPER, "child", folder.path],
                stdin=stdin,
                stdout=log_file,
                stderr=log_file,
                cwd="/",
                env=env,
                # A session of its own: Ctrl-C at the agent's terminal, and the end of its service, must not
                # reach the training.
                start_new_session=True,
            )
    finally:
        if stdin != subprocess.DEVNULL:
            os.close(stdin)


def forget_zombie(pid: int, identity: str) -> None:
    """Forgets a child of this process that has ended, such as one that this agent started before it restarted
    in the same process."""
    process = proc.read_process(pid)
    if process is not None and process.is_dead and identity == f"{proc.boot_id()}/{process.start}":
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def fail_attempt(folder: RunDir, kind: ErrorKind, sentence: str) -> None:
    """Ends an attempt that has no child yet."""
    attempt_list.update_agent_record(
        folder, phase=Phase.DONE, error=sentence, error_kind=kind, over_at=time.time()
    )


def finish_before_start(folder: RunDir) -> None:
    """Ends an attempt that was stopped before it had a child."""
    reason = (records.read(folder.stop) or {}).get("why", StopReason.CANCELED)
    attempt_list.update_agent_record(folder, phase=Phase.DONE, stopping=reason, over_at=time.time())
