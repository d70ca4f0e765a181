from __future__ import annotations

import logging
from collections.abc import Iterator

import celery
import pytest

from clusters.models import Node
from clusters.wakeups import wake

NODE = Node(name="alpha")


@pytest.fixture
def previous_app() -> Iterator[None]:
    before = celery.current_app._get_current_object()  # type: ignore[attr-defined]
    yield
    before.set_current()


def app_with(broker: str) -> celery.Celery:
    app = celery.Celery("waking", broker=broker, set_as_current=True)
    app.set_current()
    return app


@pytest.mark.usefixtures("previous_app")
class TestWake:
    def test_a_bare_name_of_the_attempt_arrives_in_the_nodes_own_queue(self) -> None:
        app = app_with("memory://")
        assert wake(NODE, "a" * 32, 2)
        with app.connection_for_read() as connection, connection.SimpleQueue("node.alpha.wake") as queue:
            message = queue.get(block=False)
        assert message.headers["task"] == "node.wake"
        assert message.payload[:2] == [[], {"run": "a" * 32, "attempt": 2}]

    @pytest.mark.parametrize(
        "broker", ["redis://127.0.0.1:1/0", "amqp://127.0.0.1:1//", "redis+socket:///nowhere/broker.sock"]
    )
    def test_a_broker_that_is_away_is_logged_and_loses_nothing(
        self, broker: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        app_with(broker)
        with caplog.at_level(logging.WARNING):
            assert not wake(NODE, "a" * 32, 1)
        assert "alpha could not be woken" in caplog.text
