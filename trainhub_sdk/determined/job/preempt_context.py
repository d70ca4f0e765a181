"""Whether a training should save and end: the hub announces a stop by a file and by SIGTERM."""

from __future__ import annotations

import enum
import os
import signal
import threading

# Not typing.TYPE_CHECKING: every process of a job imports this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trainhub_sdk.determined.job.distributed_context import DistributedContext

STOP_FILE = "TRAINHUB_STOP_FILE"


class PreemptMode(enum.Enum):
    """`WorkersAskChief`: all ranks ask together and hear the same; `ChiefOnly`: only rank 0 may ask;
    `WorkersAskMaster`: each rank asks for itself."""

    WorkersAskChief = "WORKERS_ASK_CHIEF"
    ChiefOnly = "CHIEF_ONLY"
    WorkersAskMaster = "WORKERS_ASK_MASTER"


class PreemptContext:
    """Between `start` and `close`, SIGTERM no longer ends the process: the script ends when it has heard of
    the stop, or is killed after the grace period of the run."""

    def __init__(self, distributed: DistributedContext, mode: Any = PreemptMode.WorkersAskChief) -> None:
        self._distributed = distributed
        self._mode = PreemptMode(mode)
        self._is_stopped = False
        self._former: Any = None

    def start(self) -> PreemptContext:
        is_main = threading.current_thread() is threading.main_thread()
        # A handler of the script's own stays.
        if os.environ.get(STOP_FILE) and is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            self._former = signal.signal(signal.SIGTERM, self._note_stop)
        return self

    def close(self) -> None:
        if self._former is not None and signal.getsignal(signal.SIGTERM) == self._note_stop:
            signal.signal(signal.SIGTERM, self._former)
        self._former = None

    def should_preempt(self, auto_ack: bool = True) -> bool:
        """Returns whether the script should save a checkpoint and end. Raises RuntimeError if this rank may
        not ask."""
        if self._mode is PreemptMode.WorkersAskChief and self._distributed.size > 1:
            return bool(self._distributed.broadcast(self._is_announced()))
        if self._mode is PreemptMode.ChiefOnly and self._distributed.rank != 0:
            raise RuntimeError(f"Only rank 0 may ask should_preempt(), and this is {self._distributed.rank}.")
        return self._is_announced()

    def acknowledge_preemption_signal(self) -> None:
        """Does nothing: the hub sees that the process has ended."""

    def _is_announced(self) -> bool:
        file = os.environ.get(STOP_FILE, "")
        return self._is_stopped or (bool(file) and os.path.exists(file))

    def _note_stop(self, _number: int, _frame: object) -> None:
        self._is_stopped = True

    def __enter__(self) -> PreemptContext:
        return self.start()

    def __exit__(self, *_error: object) -> None:
        self.close()
