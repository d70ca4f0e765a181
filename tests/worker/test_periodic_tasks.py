"""Celery tasks by their names, and those that the worker repeats without beat and broker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from celery import Celery

from trainhub.celery import app
from trainhub.worker import local_tasks as module
from trainhub.worker.local_tasks import LocalTasks
from trainhub.worker.periodic_tasks import PERIODIC_TASKS, beat_schedule, local_tasks
from workspaces.task_names import TaskName

Task = Callable[[], object]


class TestNames:
    def test_are_those_of_all_tasks_there_are(self) -> None:
        app.loader.import_default_modules()
        assert {name for name in app.tasks if not name.startswith("celery.")} == set(TaskName)

    def test_each_periodic_task_is_run_by_beat_or_by_the_worker_and_never_by_both(self) -> None:
        by_beat = [entry["task"] for entry in beat_schedule().values()]
        assert sorted([*by_beat, *local_tasks()]) == sorted(task for task, _ in PERIODIC_TASKS.values())


@contextmanager
def repeated(monkeypatch: pytest.MonkeyPatch, **tasks: tuple[Task, float]) -> Iterator[LocalTasks]:
    """A worker that has only these tasks, each with its interval in seconds."""
    celery = Celery("test", set_as_current=False)
    for name, (task, _) in tasks.items():
        celery.task(name=name, shared=False)(task)
    intervals = {name: interval_s for name, (_, interval_s) in tasks.items()}
    monkeypatch.setattr(module, "local_tasks", lambda: intervals)
    running = LocalTasks(celery)
    running.start()
    try:
        yield running
    finally:
        running.stop()


class TestLocalTasks:
    def test_are_repeated_at_their_interval(self, monkeypatch: pytest.MonkeyPatch) -> None:
        moments: list[float] = []
        ran = threading.Semaphore(0)

        def task() -> None:
            moments.append(time.monotonic())
            ran.release()

        started = time.monotonic()
        with repeated(monkeypatch, task=(task, 0.2)):
            assert all(ran.acquire(timeout=30) for _ in range(4))
        # Never early; how late they are depends on the machine, and the next one does not wait for it.
        assert all(moment - started >= 0.2 * count - 0.01 for count, moment in enumerate(moments))

    def test_one_that_takes_long_delays_no_other(self, monkeypatch: pytest.MonkeyPatch) -> None:
        release, ran = threading.Event(), threading.Semaphore(0)

        def wait() -> None:
            release.wait(60)

        try:
            with repeated(monkeypatch, slow=(wait, 0.05), quick=(ran.release, 0.05)):
                assert all(ran.acquire(timeout=30) for _ in range(3))
        finally:
            release.set()

    def test_one_that_fails_is_logged_and_tried_again(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        ran = threading.Semaphore(0)

        def task() -> None:
            ran.release()
            raise RuntimeError("the database is locked")

        with repeated(monkeypatch, task=(task, 0.05)):
            assert all(ran.acquire(timeout=30) for _ in range(2))
        assert "The periodic task task failed; it is tried again when it is due" in caplog.text
        assert "the database is locked" in caplog.text

    def test_none_begins_after_the_stop(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ran = threading.Semaphore(0)
        with repeated(monkeypatch, task=(ran.release, 0.05)) as running:
            assert ran.acquire(timeout=30)
            running.stop()
            # One may have begun just before.
            time.sleep(0.2)
            while ran.acquire(blocking=False):
                pass
            assert not ran.acquire(timeout=0.5)
