"""Beat beside a broker that refuses its messages: it goes on, and sends what was due afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from celery import Celery
from celery.beat import EmbeddedService

from tests.hub import eventually
from trainhub import installation
from trainhub.celery import SCHEDULER

QUEUE = "due"


@pytest.fixture
def broker(valkey: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(valkey) as server:
        yield server
        server.acl_setuser("default", categories=["+@all"])


@pytest.fixture
def _beat(valkey: str, broker: redis.Redis, tmp_path: Path) -> Iterator[None]:
    """Beat as the worker runs it, with one task that is due twice a second."""
    app = Celery("beat", broker=installation.broker_of(valkey), set_as_current=False)
    app.conf.task_default_queue = QUEUE
    app.conf.beat_schedule = {"tick": {"task": "tick", "schedule": 0.5}}
    service = EmbeddedService(
        app, thread=True, schedule_filename=str(tmp_path / "beat"), scheduler_cls=SCHEDULER
    )
    service.start()  # type: ignore[union-attr]  # a thread, as asked for
    yield
    service.stop()


@pytest.mark.usefixtures("_beat")
class TestPatientScheduler:
    def test_sends_what_is_due_after_the_broker_has_refused_it(
        self, broker: redis.Redis, caplog: pytest.LogCaptureFixture
    ) -> None:
        eventually(lambda: broker.llen(QUEUE), 20, "beat sends")
        broker.acl_setuser("default", commands=["-lpush"])
        eventually(lambda: "Periodic tasks cannot be sent (" in caplog.text, 20, "a message is refused")
        before = broker.llen(QUEUE)
        broker.acl_setuser("default", categories=["+@all"])
        eventually(lambda: broker.llen(QUEUE) >= before + 2, 20, "beat goes on")
