"""Beat, with a scheduler that sends due tasks later if the broker does not accept them."""

from __future__ import annotations

import logging
from typing import Any

from celery.beat import PersistentScheduler, SchedulingError

from trainhub.worker.leadership import leadership
from trainhub.worker.pause import Pause

log = logging.getLogger(__name__)
NOT_LEADING_S = 2.0


class PatientScheduler(PersistentScheduler):
    """Continues after every error, with a pause that grows, and then sends the tasks that were due."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        self._pause = Pause()
        super().__init__(*args, **kwargs)

    def adjust(self, n: float, drift: float = 0.002) -> float:
        """Returns the seconds to sleep until a task is due in `n` seconds."""
        # Celery wakes up 10 ms early and then asks again and again without a pause: 10 ms of CPU per task.
        return n + drift if n and n > 0 else n

    def tick(self, *args: Any, **kwargs: Any) -> float:
        if not leadership.is_leader:
            # What is due meanwhile is sent as soon as this worker leads, though the former leader may have
            # sent it, too: each of these tasks may run twice.
            return NOT_LEADING_S
        before = dict(self.schedule)
        try:
            return float(super().tick(*args, **kwargs))
        except Exception as error:
            # Celery has taken the entry from its heap, and noted that it ran. Both are undone: it is due
            # again.
            self.schedule.update(before)
            self._heap = None
            seconds = self._pause.after_failure()
            log.warning(
                "Periodic tasks cannot be sent (%s: %s); next try in %.1f s",
                type(error).__name__,
                error,
                seconds,
            )
            return seconds

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        """Sends an entry and raises errors. Celery's own method only logs two stack traces, and does not send
        the task before its next turn."""
        try:
            self.apply_async(entry, producer=producer, advance=False)
        except SchedulingError as error:
            raise (error.__cause__ or error) from error
