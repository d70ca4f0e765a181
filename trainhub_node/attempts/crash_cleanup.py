"""Ends the processes of an attempt whose child has died (killed, out of memory, a reboot), and records the
error."""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from trainhub_launch.states import ErrorKind
from trainhub_node import proc, records
from trainhub_node.attempts import attempt_list, termination
from trainhub_node.attempts.attempt_list import Key
from trainhub_node.environments import builder_account, interpreter
from trainhub_node.isolation import cgroups
from trainhub_node.rundir import RunDir
from trainhub_node.untrusted import removal

log = logging.getLogger(__name__)
RETRY_S = 0.2
TIMEOUT_S = 60.0


class CrashCleaner:
    """Cleans up after dead children in threads of its own; `on_change` is called after each."""

    def __init__(self, environments: Path, on_change: Callable[[], None]) -> None:
        self._environments = environments
        self._on_change = on_change
        self._submitted: set[Key] = set()
        self._threads = ThreadPoolExecutor(2, "burying")

    def submit(self, folder: RunDir) -> None:
        """Called from one thread only; repeated calls for an attempt have no effect."""
        if folder.key not in self._submitted:
            self._submitted.add(folder.key)
            self._threads.submit(self._clean_up, folder)

    def _clean_up(self, folder: RunDir) -> None:
        try:
            child = attempt_list.read_child(folder) or {}
            # After a reboot the process ids of the record belong to other processes.
            is_reboot = not str(child.get("identity", "")).startswith(f"{proc.boot_id()}/")
            killed = 0 if is_reboot else kill_all(folder, int(child.get("pid", 0)))
            builder_account.kill_abandoned(str(self._environments))
            # What a build of wheels has left; no other order has a folder of its own there.
            removal.remove_tree(f"{self._environments}/{folder.run}{interpreter.SCRATCH}")
            place = (records.read(folder.terms) or {}).get("cgroup")
            if place is not None:
                cgroups.remove(place, Path(folder.path).name)
            sentence = (
                "the machine was restarted while it ran."
                if is_reboot
                else (
                    f"the process that supervised it {_death_of_child(folder)}; {killed} process(es) of "
                    "the run were killed."
                )
            )
            log.error("Run %s, attempt %d: %s", folder.run, folder.attempt, sentence)
            attempt_list.update_agent_record(
                folder, error=sentence, error_kind=ErrorKind.INTERNAL, over_at=time.time()
            )
        except Exception:
            log.exception(
                "Run %s, attempt %d could not be cleaned up; it is retried", folder.run, folder.attempt
            )
            # So that the next look at this attempt submits it again.
            self._submitted.discard(folder.key)
        self._on_change()


def _death_of_child(folder: RunDir) -> str:
    """Returns "was killed", or "failed" with the last line of the child's log, which then holds a
    traceback."""
    lines = Path(folder.child_log).read_text(errors="replace").strip().splitlines()
    return f"failed ({lines[-1].strip()})" if lines else "was killed"


def kill_all(folder: RunDir, session: int) -> int:
    """Sends SIGKILL to every process of the attempt until none is left. Returns how many there were. Raises
    TimeoutError.

    `session`: the process id of the child, which is also the id of its session."""
    killed: set[int] = set()
    deadline = time.monotonic() + TIMEOUT_S
    while living := termination.attempt_processes(
        *folder.key, session=session, roots=frozenset(), path=folder.path
    ):
        killed |= living
        # Stopped first, so that no wrapper can record its rank's end as an exit of its own.
        termination.send_signal(living, signal.SIGSTOP)
        termination.send_signal(living, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {sorted(living)} do not end, even by SIGKILL")
        time.sleep(RETRY_S)
    return len(killed)
