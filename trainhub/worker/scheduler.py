"""Beat: what is due is sent later where the broker does not take it."""

from __future__ import annotations

import logging
from typing import Any

from celery.beat import PersistentScheduler, SchedulingError

from trainhub.worker.pause import Pause

log = logging.getLogger(__name__)


class PatientScheduler(PersistentScheduler):
    """Goes on after every error, with a pause that grows, and sends again what was due."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._pause = Pause()
        super().__init__(*args, **kwargs)

    def tick(self, *args: Any, **kwargs: Any) -> float:
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
        """As in Celery, which logs two stack traces for a task that could not be sent, and forgets it until
        its next turn."""
        try:
            self.apply_async(entry, producer=producer, advance=False)
        except SchedulingError as error:
            raise (error.__cause__ or error) from error
