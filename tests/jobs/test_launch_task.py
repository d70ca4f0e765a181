"""A submission reaches its nodes through the Celery task `jobs.tasks.launch_run`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import celery
import pytest
from celery.contrib.testing.worker import start_worker

from jobs import tasks
from jobs.models import Attempt, Run
from jobs.scheduling import run_actions
from jobs.states import RunState
from tests.hub import eventually
from tests.jobs.builders import Played, ended, launched, node, queued, spec
from workspaces.access import Principal

Capture = Callable[..., AbstractContextManager[list[Callable[[], Any]]]]
LAUNCH_RUN = "jobs.tasks.launch_run"
"""Messages of this name are under way while a hub is upgraded: it stays."""


@pytest.fixture
def broker() -> Iterator[celery.Celery]:
    """The broker in memory to which this process sends its tasks."""
    before = celery.current_app._get_current_object()  # type: ignore[attr-defined]
    app = celery.Celery("launch", broker="memory://", set_as_current=True)
    app.conf.task_default_queue = "hub"
    app.set_current()
    yield app
    for name in ("hub", "node.alpha.wake"):
        take_all(app, name)  # the queues in memory outlive the app
    before.set_current()
    before.set_default()


def take_all(app: celery.Celery, name: str = "hub") -> list[tuple[str, list[Any]]]:
    """The messages in a queue, (task, arguments); they are gone from it afterwards."""
    with app.connection_for_read() as connection, connection.SimpleQueue(name) as queue:
        messages = []
        while queue.qsize():
            message = queue.get(block=False)
            message.ack()
            messages.append((message.headers["task"], message.payload[0]))
        return messages


@pytest.mark.django_db
class TestMessage:
    def test_a_submission_sends_it_after_the_commit_and_it_launches_the_run(
        self, broker: celery.Celery, who: Principal, django_capture_on_commit_callbacks: Capture
    ) -> None:
        node()
        with django_capture_on_commit_callbacks(execute=True):
            run = run_actions.submit(spec(who), who)
            assert take_all(broker) == []
        assert take_all(broker) == [(LAUNCH_RUN, [run.pk])]
        for _ in range(2):  # a broker may deliver a message twice
            tasks.launch_run(run.pk)
        run.refresh_from_db()
        assert (run.state, Attempt.objects.count()) == (RunState.PROVISIONING, 1)

    def test_a_further_attempt_sends_it_too(
        self, broker: celery.Celery, who: Principal, django_capture_on_commit_callbacks: Capture
    ) -> None:
        alpha = Played(node())
        run = launched(who, limits={"retries": 1})
        alpha.claim(run)
        with django_capture_on_commit_callbacks(execute=True):
            alpha.finish(run, ended(0, 3))
        assert (LAUNCH_RUN, [run.pk]) in take_all(broker)

    def test_an_end_has_the_whole_queue_launched(
        self, broker: celery.Celery, who: Principal, django_capture_on_commit_callbacks: Capture
    ) -> None:
        run, _ = queued(who), queued(who)
        with django_capture_on_commit_callbacks(execute=True):
            run_actions.cancel(run, who.user)
        assert [task for task, _ in take_all(broker)] == ["jobs.tasks.launch_queued"]

    def test_an_end_sends_nothing_while_no_run_waits(
        self, broker: celery.Celery, who: Principal, django_capture_on_commit_callbacks: Capture
    ) -> None:
        run = queued(who)
        with django_capture_on_commit_callbacks(execute=True):
            run_actions.cancel(run, who.user)
        assert take_all(broker) == []


@pytest.mark.django_db
class TestQueueOfItsCluster:
    def test_only_that_queue_is_launched(self, who: Principal) -> None:
        node("alpha")
        node("beta", cluster="other")
        here, elsewhere = queued(who), queued(who, resources={"cluster": "other"})
        tasks.launch_run(here.pk)
        states = dict(Run.objects.values_list("pk", "state"))
        assert states == {here.pk: RunState.PROVISIONING, elsewhere.pk: RunState.QUEUED}

    def test_a_run_in_front_goes_first(self, who: Principal) -> None:
        node(slots=1)
        first, second = queued(who), queued(who)
        tasks.launch_run(second.pk)
        states = dict(Run.objects.values_list("pk", "state"))
        assert states == {first.pk: RunState.PROVISIONING, second.pk: RunState.QUEUED}

    def test_a_run_that_is_gone_or_no_longer_queued_is_left_alone(self, who: Principal) -> None:
        run = queued(who)
        run_actions.cancel(run, who.user)
        for run_id in (run.pk, "f" * 32):
            tasks.launch_run(run_id)
        assert not Attempt.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_real_worker_launches_a_submission_without_the_periodic_twin(
    broker: celery.Celery, who: Principal
) -> None:
    node()
    with start_worker(broker, pool="threads", concurrency=2, queues=["hub"], perform_ping_check=False):
        run = run_actions.submit(spec(who), who)
        eventually(
            lambda: Run.objects.get(pk=run.pk).state == RunState.PROVISIONING,
            what="the worker launches the run",
        )
