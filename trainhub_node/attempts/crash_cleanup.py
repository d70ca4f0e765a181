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
AGAIN_S = 0.2
GIVE_UP_S = 60.0


class Graves:
    def __init__(self, environments: Path, changed: Callable[[], None]) -> None:
        self._environments = environments
        self._changed = changed
        self._dug: set[Key] = set()
        self._threads = ThreadPoolExecutor(2, "burying")

    def dig(self, folder: RunDir) -> None:
        """Called from one thread only; again for the same attempt is fine."""
        if folder.key not in self._dug:
            self._dug.add(folder.key)
            self._threads.submit(self._bury, folder)

    def _bury(self, folder: RunDir) -> None:
        try:
            child = book.read_child(folder) or {}
            rebooted = not str(child.get("identity", "")).startswith(f"{proc.boot_id()}/")
            left = 0 if rebooted else end_all(folder, int(child.get("pid", 0)))
            builder_account.end_abandoned(str(self._environments))
            sentence = (
                "the machine was restarted while it ran."
                if rebooted
                else (
                    f"the process that supervised it {_how(folder)}; {left} process(es) of the run "
                    "were ended."
                )
            )
            log.error("Run %s, attempt %d: %s", folder.run, folder.attempt, sentence)
            book.update_agent_record(folder, error=sentence, error_kind="internal", over_at=time.time())
        except Exception:
            log.exception(
                "Run %s, attempt %d could not be buried; it is tried again", folder.run, folder.attempt
            )
            self._dug.discard(folder.key)
        self._changed()


def _how(folder: RunDir) -> str:
    """Killed, or failed: then its own log holds a traceback."""
    said = Path(folder.child_log).read_text(errors="replace").strip().splitlines()
    return f"failed ({said[-1].strip()})" if said else "was killed"


def end_all(folder: RunDir, session: int) -> int:
    """SIGKILL to every process of the attempt until none is left; how many there were."""
    ended: set[int] = set()
    give_up = time.monotonic() + GIVE_UP_S
    while left := termination.belonging(*folder.key, session=session, roots=frozenset(), path=folder.path):
        ended |= left
        # Halted first, lest a wrapper writes down its rank's end as if nobody had brought it about.
        termination.send(left, signal.SIGSTOP)
        termination.send(left, signal.SIGKILL)
        if time.monotonic() > give_up:
            raise TimeoutError(f"processes {sorted(left)} do not end, even by SIGKILL")
        time.sleep(AGAIN_S)
    return len(ended)
