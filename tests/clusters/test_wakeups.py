from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import celery
import pytest
import redis
from pytest_django import Settings

from clusters import brokers
from clusters.enrolment.node_tokens import enrol_node
from clusters.models import Node
from clusters.wakeups import wake
from tests.live.test_publish import running
from trainhub.installation import broker_of
from trainhub.up.valkey import configured

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


@pytest.mark.django_db(transaction=True)
def test_a_node_takes_its_wake_ups_from_the_database_of_the_hub(tmp_path: Path, settings: Settings) -> None:
    for name in ("run", "valkey"):
        (tmp_path / name).mkdir()
    server = configured(tmp_path, password="of-tests-only")
    server.config.write_text(server.config.read_text().replace("databases 1", "databases 2"))
    settings.BROKER_URL = f"{broker_of(server.url)}?virtual_host=1"
    with running(server), redis.Redis.from_url(server.url, db=1) as hub:
        parts = urlsplit(brokers.login_for_node(enrol_node("local", "alpha")[0], "localhost").url)
        assert parts.query == "virtual_host=1"
        hub.lpush("node.alpha.wake", "a wake-up")
        with redis.Redis(
            unix_socket_path=parts.path, db=1, username=parts.username, password=parts.password
        ) as own:
            assert own.brpop(["node.alpha.wake"], timeout=1) == (b"node.alpha.wake", b"a wake-up")
