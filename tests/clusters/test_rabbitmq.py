"""The permissions of a node's user at a real RabbitMQ."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import celery
import pytest
from amqp.exceptions import AccessRefused
from kombu.connection import Connection
from kombu.exceptions import OperationalError
from pytest_django import Settings

from clusters import brokers
from clusters.brokers.errors import BrokerUnavailable
from clusters.enrolment.node_tokens import enrol_node, revoke_node
from clusters.models import Node
from clusters.wakeups import wake
from tests.clusters.rabbitmq import Rabbit, rabbit
from tests.clusters.wakeup_listeners import listening, run_id
from tests.hub import eventually, free_port


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rabbit]:
    with rabbit(tmp_path_factory.mktemp("rabbit")) as running:
        yield running


@pytest.fixture(autouse=True)
def _broker(request: pytest.FixtureRequest, settings: Settings) -> Iterator[None]:
    brokers._logged.clear()
    if "server" in request.fixturenames:
        running: Rabbit = request.getfixturevalue("server")
        settings.BROKER_URL, settings.RABBITMQ_API_URL = running.url, running.api_url
    else:
        settings.BROKER_URL, settings.RABBITMQ_API_URL = "amqp://guest:guest@127.0.0.1:1//", ""
    before = celery.current_app._get_current_object()  # type: ignore[attr-defined]
    app = celery.Celery("sending", broker=settings.BROKER_URL, set_as_current=True)
    app.set_current()
    yield
    app.close()
    before.set_current()


def node(name: str) -> Node:
    return enrol_node("local", name)[0]


def line(made: Node) -> Any:
    url = brokers.login_for_node(made, "localhost").url
    assert f"//node.{made.name}:" in url
    return connection(url)


def connection(url: str) -> Any:
    return Connection(url)


def refused(own: Any, act: str, *args: object, **named: object) -> bool:
    """Whether the server refuses what the channel's method `act` asks for."""
    with own.channel() as channel:
        try:
            getattr(channel, act)(*args, **named)
        except AccessRefused:
            return True
    return False


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("server")
class TestRights:
    def test_the_nodes_own_worker_is_woken_and_no_other(self, tmp_path: Path) -> None:
        with listening([node("alpha"), node("beta")], tmp_path) as ears:
            for number in range(10):
                for ear in ears:
                    assert wake(ear.node, run_id(ear.node, number), 1)
            for ear in ears:
                wanted = [run_id(ear.node, number) for number in range(10)]
                eventually(partial(ear.has_heard, wanted), 20, ear.said)

    def test_the_queues_of_others_and_the_hub_are_closed(self) -> None:
        assert wake(node("beta"), "a" * 32, 1)
        with line(node("alpha")) as own:
            for queue in ("node.beta.wake", "hub"):
                assert refused(own, "queue_declare", queue, durable=True, auto_delete=False)
                assert refused(own, "basic_get", queue)
                assert refused(own, "queue_purge", queue)
                assert refused(own, "queue_delete", queue)
            assert refused(own, "exchange_declare", "hub", "direct", durable=True, auto_delete=False)
            assert refused(own, "queue_declare", "node.alpha.wake.more", durable=True, auto_delete=False)
            assert refused(own, "queue_declare", "xnode.alpha.wake", durable=True, auto_delete=False)

    @pytest.mark.parametrize("exchange", ["hub", "", "amq.direct"])
    def test_nothing_can_be_sent_to_the_hub(self, exchange: str) -> None:
        celery.current_app.send_task("jobs.tasks.nothing", queue="hub", ignore_result=True)
        with line(node("alpha")) as own, own.channel() as channel:
            channel.basic_publish(channel.prepare_message(b"{}"), exchange=exchange, routing_key="hub")
            # Publishing waits for no answer: the refusal comes instead of the next one.
            with pytest.raises(AccessRefused):
                channel.queue_declare("node.alpha.wake", durable=True, auto_delete=False)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("server")
class TestEnd:
    def test_revoking_closes_the_connections_and_the_door(self) -> None:
        alpha = node("alpha")
        with line(alpha) as own:
            own.channel()
            url = own.as_uri(include_password=True)
            revoke_node(alpha)
            eventually(lambda: _is_closed(own), 20)
        with connection(url) as again, pytest.raises((AccessRefused, OperationalError)):
            again.connect()

    def test_a_revocation_that_the_broker_missed_is_made_good(self) -> None:
        alpha = node("alpha")
        line(alpha).release()
        Node.objects.update(revoked_at=alpha.created_at)
        brokers.repair_users()
        assert "alpha" not in _known()

    def test_a_node_that_the_broker_forgot_is_let_in_again(self) -> None:
        alpha = node("alpha")
        with line(alpha) as own:
            brokers.remove_user("alpha")
            brokers.repair_users()
            with connection(own.as_uri(include_password=True)) as again:
                again.connect()


@pytest.mark.django_db(transaction=True)
def test_without_the_management_plugin_nobody_gets_the_hubs_own(caplog: pytest.LogCaptureFixture) -> None:
    alpha = node("alpha")
    with caplog.at_level(logging.WARNING):
        assert [brokers.login_for_node(alpha, "localhost") for _ in range(2)] == [brokers.BrokerLogin()] * 2
    assert caplog.text.count("RABBITMQ_API_URL") == 1


@contextmanager
def answering(status: int) -> Iterator[str]:
    """The address of a server that answers every request with this status."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_PUT(self) -> None:
            self.do_GET()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://hub:secret@127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.django_db(transaction=True)
class TestManagementPlugin:
    @pytest.mark.parametrize("status", [401, 403])
    def test_that_refuses_the_hubs_user_is_logged_once_with_the_remedy(
        self, status: int, settings: Settings, caplog: pytest.LogCaptureFixture
    ) -> None:
        alpha = node("alpha")
        with answering(status) as settings.RABBITMQ_API_URL, caplog.at_level(logging.WARNING):
            assert brokers.login_for_node(alpha, "localhost") == brokers.BrokerLogin()
            brokers.repair_users()
        assert caplog.text.count("refuses the user of RABBITMQ_API_URL; set RABBITMQ_API_URL to") == 1
        assert "secret" not in caplog.text

    @pytest.mark.parametrize("status", [301, 404, 500])
    def test_that_fails_or_is_something_else_is_away_for_now(
        self, status: int, settings: Settings, caplog: pytest.LogCaptureFixture
    ) -> None:
        alpha = node("alpha")
        with answering(status) as settings.RABBITMQ_API_URL:
            with pytest.raises(BrokerUnavailable, match=f"answered {status}"):
                brokers.login_for_node(alpha, "localhost")
            brokers.repair_users()
        assert f"could not be checked: RabbitMQ's management plugin answered {status}" in caplog.text

    def test_that_does_not_answer_is_away_for_now(self, settings: Settings) -> None:
        settings.RABBITMQ_API_URL = f"http://hub:secret@127.0.0.1:{free_port()}"
        with pytest.raises(BrokerUnavailable, match="does not answer") as caught:
            brokers.login_for_node(node("alpha"), "localhost")
        assert "secret" not in str(caught.value)


def _known() -> set[str]:
    return brokers._broker().user_names()


def _is_closed(own: Any) -> bool:
    try:
        own.heartbeat_check()
        own.drain_events(timeout=0.05)
    except TimeoutError:
        return False
    except (OSError, *own.connection_errors):
        return True
    return False
