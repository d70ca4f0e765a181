"""When the child itself has died (killed, out of memory, a reboot): end what it left behind, and say so."""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from trainhub_node import proc
from trainhub_node.attempts import attempt_list as book
from trainhub_node.attempts import termination
from trainhub_node.attempts.attempt_list import Key
from trainhub_node.environments import builder_account
from trainhub_node.rundir import RunDir

log = logging.getLogger(__name__)
RETRY_S = 0.2
TIMEOUT_S = 60.0


class CrashCleaner:
    def __init__(self, environments: Path, on_change: Callable[[], None]) -> None:
        self._environments = environments
        self._on_change = on_change
        self._submitted: set[Key] = set()
        self._threads = ThreadPoolExecutor(2, "burying")

    def submit(self, folder: RunDir) -> None:
        """Called from one thread only; again for the same attempt is fine."""
        if folder.key not in self._submitted:
            self._submitted.add(folder.key)
            self._threads.submit(self._clean_up, folder)

    def _clean_up(self, folder: RunDir) -> None:
        try:
            child = book.read_child(folder) or {}
            is_reboot = not str(child.get("identity", "")).startswith(f"{proc.boot_id()}/")
            killed = 0 if is_reboot else kill_all(folder, int(child.get("pid", 0)))
            builder_account.kill_abandoned(str(self._environments))
            sentence = (
                "the machine was restarted while it ran."
                if is_reboot
                else (
                    f"the process that supervised it {_death_of_child(folder)}; {killed} process(es) of the run "
                    "were ended."
                )
            )
            log.error("Run %s, attempt %d: %s", folder.run, folder.attempt, sentence)
            book.update_agent_record(folder, error=sentence, error_kind="internal", over_at=time.time())
        except Exception:
            log.exception(
                "Run %s, attempt %d could not be buried; it is tried again", folder.run, folder.attempt
            )
            self._submitted.discard(folder.key)
        self._on_change()


def _death_of_child(folder: RunDir) -> str:
    """Killed, or failed: then its own log holds a traceback."""
    lines = Path(folder.child_log).read_text(errors="replace").strip().splitlines()
    return f"failed ({lines[-1].strip()})" if lines else "was killed"


def kill_all(folder: RunDir, session: int) -> int:
    """SIGKILL to every process of the attempt until none is left; how many there were."""
    killed: set[int] = set()
    deadline = time.monotonic() + TIMEOUT_S
    while living := termination.processes_of(*folder.key, session=session, roots=frozenset(), path=folder.path):
        killed |= living
        # Halted first, lest a wrapper writes down its rank's end as if nobody had brought it about.
        termination.send(living, signal.SIGSTOP)
        termination.send(living, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {sorted(living)} do not end, even by SIGKILL")
        time.sleep(RETRY_S)
    return len(killed)
