"""Takes a canceled run out of the queue of a cluster that has one of its own, at once: the periodic look does
so within seconds. Where somebody has to do something first, the run says so."""

from __future__ import annotations

from clusters.kinds import BACKENDS
from jobs import lifecycle
from jobs.models import Run
from jobs.states import FINAL, RunState


def leave_queue(run_id: str) -> None:
    """Gives up what the run has or waits for there. Does nothing if it has not ended."""
    if not Run.objects.filter(pk=run_id, state__in=FINAL).exists():
        return
    for backend in BACKENDS.values():
        if backend.scheduler is not None:
            keys = [key for key in backend.scheduler.open_attempts() if key[0] == run_id]
            for (holder, attempt), sentence in backend.scheduler.cancel(keys).items():
                lifecycle.record_event(holder, sentence, attempt=attempt)


def pending_cancels(run: Run) -> list[str]:
    """Returns why a canceled run is not out of that queue yet, nothing if it is."""
    if run.state != RunState.CANCELED:
        return []
    schedulers = [backend.scheduler for backend in BACKENDS.values() if backend.scheduler is not None]
    return [sentence for scheduler in schedulers if (sentence := scheduler.pending_cancel(run.pk))]
