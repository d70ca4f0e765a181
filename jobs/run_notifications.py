"""Notifies channels that a run has ended: queues the message within the transaction that ends the run."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.conf import settings

from jobs.models import Run
from jobs.states import Reason, RunState
from workspaces.notifications import outbox
from workspaces.notifications.events import RUN_CANCELED, RUN_COMPLETED, RUN_FAILED, Event

# Hooks of higher apps, called within the transaction that ends a run; their AppConfig.ready adds them.
END_HOOKS: list[Callable[[Run], None]] = []
NAMES = {RunState.COMPLETED: RUN_COMPLETED, RunState.FAILED: RUN_FAILED, RunState.CANCELED: RUN_CANCELED}


def notify_ended(run: Run, state: RunState, reason: Reason, sentence: str, at: datetime) -> None:
    """Queues the notification. `run`: as it was before it entered the final state `state`."""
    for follow in END_HOOKS:
        follow(run)
    name = NAMES[state]

    def body(_: int) -> dict[str, Any]:
        title = f"run {run.number}" + (f" ({run.display_name})" if run.display_name else "")
        return {
            "event": name,
            "at": at.isoformat(),
            "text": f"[{state.value.lower()}] {title}: {sentence}",
            "url": f"{settings.PUBLIC_URL}/runs/{run.number}/",
            "alert": None,
            "node": None,
            "gpu": None,
            "run": {
                "id": run.pk,
                "title": f"run {run.number}",
                "number": run.number,
                "name": run.display_name,
                "experiment": run.experiment.name,
                "state": state.value,
                "reason": reason.value,
                "sentence": sentence,
                "attempt": run.attempt,
            },
        }

    outbox.post(
        Event(
            name=name,
            key=f"run:{run.pk}",
            at=at,
            subscriptions=(name,),
            workspaces=(run.workspace_id,),
            body=body,
            theirs=run.workspace_id,
            person=run.created_by_id,
        )
    )
