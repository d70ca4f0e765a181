"""The hub's Celery app, and a beat that lives and dies with the worker that carries it."""

from __future__ import annotations

import os
import warnings
from typing import Any

from celery import Celery, bootsteps
from celery.beat import EmbeddedService
from celery.platforms import SecurityWarning
from click import Option

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "trainhub.settings")
# What it warns of, pickled messages as root, cannot happen: only JSON is accepted.
warnings.filterwarnings("ignore", category=SecurityWarning)
SCHEDULER = "trainhub.worker.scheduler:PatientScheduler"
app = Celery("trainhub")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.set_default()  # the current app is per thread; the web server sends tasks from many


class Clock(bootsteps.StartStopStep):
    """`--clock`: beat as a thread. Celery's own `-B` forks a process that survives kill -9 of the worker and
    then ticks twice."""

    def __init__(self, worker: Any, clock: bool = False, **options: Any) -> None:
        self.enabled = clock
        super().__init__(worker, **options)

    def include_if(self, parent: Any) -> bool:  # noqa: ARG002
        return self.enabled

    def create(self, parent: Any) -> Any:
        return EmbeddedService(
            parent.app,
            thread=True,
            schedule_filename=parent.app.conf.beat_schedule_filename,
            scheduler_cls=SCHEDULER,
        )


app.steps["worker"].add(Clock)
app.user_options["worker"].add(
    Option(["--clock"], is_flag=True, help="Run the periodic tasks in this worker too.")
)
