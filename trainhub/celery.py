"""The hub's Celery app, with a beat that runs as a thread of the worker."""

from __future__ import annotations

import os
import warnings
from typing import Any

from celery import Celery, bootsteps
from celery.beat import EmbeddedService
from celery.exceptions import SecurityWarning
from celery.signals import worker_ready
from click import Option
from kombu.utils.imports import symbol_by_name

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "trainhub.settings")
# Celery warns that root could receive pickled messages. That cannot happen: only JSON is accepted.
warnings.filterwarnings("ignore", category=SecurityWarning)
LOCAL_TASKS = "trainhub.worker.local_tasks:LocalTasks"
LEADERSHIP = "trainhub.worker.leadership:leadership"
MEASUREMENTS = "trainhub.worker.measurements:PublishedMeasurements"
SCHEDULER = "trainhub.worker.scheduler:PatientScheduler"
SPARE_LASTING_OBJECTS = "trainhub.serving.preload:spare_lasting_objects"
app = Celery("trainhub")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.set_default()  # the current app is per thread; the web server sends tasks from many


class Clock(bootsteps.StartStopStep):
    """With the option `--clock`, runs beat as a thread of the worker. Celery's own `-B` forks a process that
    survives kill -9 of the worker; every task would then be sent twice."""

    def __init__(self, worker: object, clock: bool = False, **options: object) -> None:
        self.enabled = clock
        super().__init__(worker, **options)

    def include_if(self, parent: object) -> bool:  # noqa: ARG002
        return self.enabled

    def create(self, parent: Any) -> Any:
        return EmbeddedService(
            parent.app,
            thread=True,
            schedule_filename=parent.app.conf.beat_schedule_filename,
            scheduler_cls=SCHEDULER,
        )


class LocalClock(bootsteps.StartStopStep):
    """With the option `--clock`, runs the most frequent periodic tasks in threads of the worker."""

    def __init__(self, worker: Any, clock: bool = False, **options: Any) -> None:
        self.enabled = clock
        super().__init__(worker, **options)

    def include_if(self, parent: Any) -> bool:  # noqa: ARG002
        return self.enabled

    def create(self, parent: Any) -> Any:
        return symbol_by_name(LOCAL_TASKS)(parent.app)


class ServerMembership(bootsteps.StartStopStep):
    """Registers this worker among the others, and has it lead if nobody does."""

    def create(self, parent: Any) -> Any:  # noqa: ARG002
        return symbol_by_name(LEADERSHIP)


class Measurements(bootsteps.StartStopStep):
    """Has every worker say how it is doing."""

    def create(self, parent: Any) -> Any:
        return symbol_by_name(MEASUREMENTS)(parent.app)


@worker_ready.connect
def _spare_lasting_objects(**_: object) -> None:
    symbol_by_name(SPARE_LASTING_OBJECTS)()


app.steps["worker"].add(ServerMembership)
app.steps["worker"].add(Measurements)
app.steps["worker"].add(Clock)
app.steps["worker"].add(LocalClock)
app.user_options["worker"].add(
    Option(["--clock"], is_flag=True, help="Run the periodic tasks in this worker too.")
)
