"""Ships what waits, in rounds that a worker runs every two seconds. A target that is slow or away delays no
other, and no run: the lines wait in the logs where they are."""

from __future__ import annotations

import logging
import time
from concurrent.futures import ThreadPoolExecutor

from django.conf import settings
from django.db import close_old_connections
from django.utils import timezone

from jobs.log_shipping import progress, sample_line, targets
from jobs.log_shipping.backlog import MAX_BATCH_BYTES, UnshippedLines
from jobs.log_shipping.batches import BatchDelivery
from jobs.log_shipping.log_requests import LogConnection, TargetUnavailable
from jobs.log_shipping.models import LogTarget
from workspaces.object_store.errors import StoreUnavailable
from workspaces.servers.exclusive_work import only_once

log = logging.getLogger(__name__)
MAX_THREADS = 4
# A target with a large backlog lets others in after so long.
ROUND_S = 5.0
# The rest of a round is at most a request and what follows from its answer.
LEASE_S = 60.0
# After failures requests are smaller: an answer that came too late may come in time.
MAX_SHRINKING = 4


def ship_due() -> None:
    """Ships what waits for the targets that are to be tried now."""
    due = targets.due_targets(timezone.now())
    if len(due) == 1:
        _ship_alone(due[0])
    elif due:
        with ThreadPoolExecutor(MAX_THREADS, "ship-logs") as pool:
            list(pool.map(_ship_in_thread, due))


def ship_target(target: LogTarget) -> None:
    """Ships what waits for one target, for about ROUND_S, and records how far it came."""
    if target.test_by:
        sample_line.answer_request(target)
    progress.add_attempts(target, timezone.now())
    waiting = UnshippedLines(progress.open_progress(target), settings.LOG_LINE_BYTES)
    try:
        _ship_waiting(target, waiting)
        progress.close_finished(target, timezone.now())
    # The lines of old attempts come from the object store, which may be away as well.
    except (TargetUnavailable, targets.TargetUnusable, StoreUnavailable) as error:
        if not target.failures:
            log.warning("Lines for %s wait: %s", target, error)
        retry_after_s = error.retry_after_s if isinstance(error, TargetUnavailable) else None
        targets.record_failure(target, str(error), retry_after_s, timezone.now())
        # What was on its way waits again.
        waiting = UnshippedLines(progress.open_progress(target), settings.LOG_LINE_BYTES)
    except progress.Overtaken:
        log.warning("Another worker ships lines for %s, too; this one leaves them to it", target)
    finally:
        targets.record_backlog(target, waiting.waiting_bytes, waiting.oldest_at)


def _ship_waiting(target: LogTarget, waiting: UnshippedLines) -> None:
    deadline = time.monotonic() + ROUND_S
    max_bytes = MAX_BATCH_BYTES >> min(target.failures, MAX_SHRINKING)
    began_s = time.thread_time()
    lines = waiting.next_lines(max_bytes)
    if not lines:
        return
    with LogConnection(targets.destination_of(target), targets.hub_name()) as connection:
        while lines:
            BatchDelivery(target, connection, waiting).deliver(lines)
            targets.record_success(target)
            # A backlog takes at most half of a core: the worker has other work.
            time.sleep(time.thread_time() - began_s)
            began_s = time.thread_time()
            lines = waiting.next_lines(max_bytes) if time.monotonic() < deadline else []


def _ship_in_thread(target: LogTarget) -> None:
    try:
        _ship_alone(target)
    finally:
        close_old_connections()


def _ship_alone(target: LogTarget) -> None:
    try:
        with only_once(f"ship-logs-{target.pk}", LEASE_S) as is_ours:
            if is_ours:
                ship_target(target)
    except Exception:
        log.exception("Lines for %s could not be shipped; they are tried again", target)
        message = "TrainHub itself failed; the worker's log has the traceback."
        targets.record_failure(target, message, None, timezone.now())
