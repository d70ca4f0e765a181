"""The permissions of a node's user at a real Valkey."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import celery
import pytest
import redis
from pytest_django import Settings
from redis.exceptions import NoPermissionError

from clusters import brokers
from clusters.brokers.errors import BrokerUnavailable
from clusters.enrolment.node_tokens import enrol_node, revoke_node
from clusters.models import Node
from clusters.wakeups import wake
from tests.clusters.wakeup_listeners import listening, run_id
from tests.hub import eventually, free_port
from workspaces.authentication.token_text import digest

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]
DENIED = NoPermissionError


@pytest.fixture(autouse=True)
def _no_users(valkey: str) -> Iterator[None]:
    brokers._logged.clear()
    yield
    with redis.Redis.from_url(valkey) as server:
        for name in ("node.alpha", "node.beta", "node.a", "hub-of-another"):
            server.execute_command("ACL DELUSER", name)
        server.flushall()


def node(name: str) -> Node:
    return enrol_node("local", name)[0]


def user(made: Node) -> redis.Redis:
    """The server as the node itself sees it."""
    parts = urlsplit(brokers.login_for_node(made, "localhost").url)
    assert (parts.scheme, parts.username) == ("redis+socket", f"node.{made.name}")
    return redis.Redis(unix_socket_path=parts.path, username=parts.username, password=parts.password)


class TestRights:
    def test_a_node_may_take_what_is_in_its_own_queue_and_not_put_anything_there(self, valkey: str) -> None:
        alpha = node("alpha")
        with redis.Redis.from_url(valkey) as hub, user(alpha) as own:
            hub.lpush("node.alpha.wake", "a wake-up")
            assert own.brpop(["node.alpha.wake"], timeout=1) == (b"node.alpha.wake", b"a wake-up")
            with pytest.raises(DENIED):
                own.lpush("node.alpha.wake", "a forged wake-up")

    @pytest.mark.parametrize(
        "key", ["node.beta.wake", "node.alpha2.wake", "hub", "unacked", "_kombu.binding.hub", "asgi:x"]
    )
    def test_no_other_key_can_be_read_or_written(self, key: str) -> None:
        with user(node("alpha")) as own:
            for command in ("BRPOP {} 1", "LPUSH {} x", "GET {}", "DEL {}", "SADD {} x", "HSET {} a b"):
                with pytest.raises(DENIED):
                    own.execute_command(*command.format(key).split())

    @pytest.mark.parametrize(
        "command",
        [
            "FLUSHALL",
            "FLUSHDB",
            "CONFIG GET *",
            "KEYS *",
            "SCAN 0",
            "ACL LIST",
            "ACL SETUSER node.alpha +@all",
            "PUBLISH x y",
            "SUBSCRIBE x",
            "PSUBSCRIBE *",
            "INFO",
            "MONITOR",
            "CLIENT LIST",
            "CLIENT KILL TYPE normal",
            "SHUTDOWN",
            "MODULE LIST",
            "REPLICAOF NO ONE",
            "SAVE",
            "EVAL 'return 1' 0",
            "SCRIPT FLUSH",
            "FUNCTION LIST",
            "DBSIZE",
        ],
    )
    def test_nothing_of_the_server_is_open(self, command: str) -> None:
        with user(node("alpha")) as own, pytest.raises(DENIED):
            own.execute_command(*command.split())

    def test_a_name_that_begins_like_anothers_opens_nothing_of_it(self) -> None:
        with user(node("a")) as own, pytest.raises(DENIED):
            own.brpop(["node.ab.wake"], timeout=1)

    def test_asking_again_changes_nothing_and_ends_no_connection(self) -> None:
        alpha = node("alpha")
        with user(alpha) as own:
            before = own.execute_command("PING")
            assert brokers.login_for_node(alpha, "localhost") == brokers.login_for_node(alpha, "localhost")
            assert own.execute_command("PING") == before


class TestEnd:
    def test_revoking_ends_the_user_and_what_it_has_open(self) -> None:
        alpha = node("alpha")
        with user(alpha) as own:
            own.ping()
            revoke_node(alpha)
            with pytest.raises(redis.ConnectionError):
                own.ping()

    def test_a_new_token_ends_the_old_ones_password(self) -> None:
        alpha = node("alpha")
        with user(alpha) as own:
            own.ping()
            anew = enrol_node("local", "alpha")[0]
            user(anew).ping()
            with pytest.raises(redis.ConnectionError):
                own.ping()

    def test_a_node_revoked_a_moment_ago_is_not_let_in_again(self) -> None:
        alpha = node("alpha")
        revoke_node(Node.objects.get(pk=alpha.pk))
        assert brokers.login_for_node(alpha, "localhost") == brokers.BrokerLogin()


class TestMend:
    def test_a_broker_that_forgot_its_users_has_them_back(self, valkey: str) -> None:
        alpha = node("alpha")
        with user(alpha) as own:
            own.ping()
            with redis.Redis.from_url(valkey) as server:
                server.execute_command("ACL DELUSER", "node.alpha")
            brokers.repair_users()
            assert own.ping()

    def test_a_revocation_that_the_broker_missed_is_made_good(self, valkey: str) -> None:
        alpha = node("alpha")
        user(alpha).close()
        Node.objects.update(revoked_at=alpha.created_at)
        brokers.repair_users()
        with redis.Redis.from_url(valkey) as server:
            assert b"node.alpha" not in server.execute_command("ACL USERS")


class TestAddress:
    def test_on_other_machines_the_broker_has_the_hosts_name_that_the_node_used(
        self, settings: Settings
    ) -> None:
        settings.NODE_BROKER_URL = "redis://0.0.0.0:8001/0"
        assert "@10.0.0.1:8001/0" in brokers.login_for_node(node("alpha"), "10.0.0.1").url
        assert "@[fd00::2]:8001/0" in brokers.login_for_node(node("alpha"), "fd00::2").url

    def test_or_the_one_that_was_set(self, settings: Settings) -> None:
        settings.NODE_BROKER_URL = "rediss://broker.example.org:6380"
        line = brokers.login_for_node(node("alpha"), "10.0.0.1")
        assert line.url.startswith("rediss://node.alpha:")
        assert line.url.partition("@")[2].startswith("broker.example.org:6380")

    def test_this_machines_own_node_keeps_to_the_socket(self, settings: Settings, tmp_path: Path) -> None:
        settings.NODE_BROKER_URL = "redis://0.0.0.0:8001/0"
        alpha, token = enrol_node("local", "alpha")
        settings.OWN_NODE_TOKEN_FILE = tmp_path / "node-token"
        settings.OWN_NODE_TOKEN_FILE.write_text(token)
        assert digest(token) == alpha.token_digest
        assert brokers.login_for_node(alpha, "127.0.0.1").url.startswith("redis+socket://node.alpha:")

    def test_a_broker_on_this_machine_alone_is_no_use_to_others(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        alpha = node("alpha")
        with caplog.at_level(logging.WARNING):
            assert [brokers.login_for_node(alpha, "10.0.0.1") for _ in range(2)] == [
                brokers.BrokerLogin()
            ] * 2
        assert caplog.text.count("Set OPEN=1") == 1

    def test_a_node_of_an_older_version_is_told_of_none_and_the_log_says_what_to_do(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        alpha = node("alpha")
        with caplog.at_level(logging.WARNING):
            assert [brokers.login_for_node(alpha, "localhost", ()) for _ in range(2)] == [
                brokers.BrokerLogin()
            ] * 2
        assert caplog.text.count("Install the hub's package on it again") == 1

    def test_the_authority_of_the_hubs_own_broker_is_told_beside_it(
        self, settings: Settings, tmp_path: Path
    ) -> None:
        settings.BROKER_CA = tmp_path / "ca.pem"
        settings.BROKER_CA.write_text("the authority")
        settings.NODE_BROKER_URL = "rediss://0.0.0.0:8001/0"
        assert brokers.login_for_node(node("alpha"), "10.0.0.1").ca == "the authority"

    def test_one_that_is_not_encrypted_is_warned_of(
        self, settings: Settings, caplog: pytest.LogCaptureFixture
    ) -> None:
        settings.NODE_BROKER_URL = "redis://broker.example.org:6380"
        with caplog.at_level(logging.WARNING):
            brokers.login_for_node(node("alpha"), "10.0.0.1")
        assert "use rediss:// in NODE_BROKER_URL" in caplog.text
        assert "node.alpha" not in caplog.text

    def test_nor_is_the_hubs_own_address_of_it(
        self, settings: Settings, caplog: pytest.LogCaptureFixture
    ) -> None:
        settings.BROKER_URL = f"redis://:secret@0.0.0.0:{free_port()}/0"
        with caplog.at_level(logging.WARNING), pytest.raises(BrokerUnavailable):
            brokers.login_for_node(node("alpha"), "10.0.0.1")
        assert "use rediss:// in NODE_BROKER_URL or BROKER_URL" in caplog.text
        assert "secret" not in caplog.text


class TestForeignBroker:
    def test_without_the_right_to_make_users_nobody_gets_the_hubs_own(
        self, valkey: str, settings: Settings, caplog: pytest.LogCaptureFixture
    ) -> None:
        with redis.Redis.from_url(valkey) as server:
            rules = ("reset", "allkeys", "allchannels", "+@all", "-acl", ">secret", "on")
            server.execute_command("ACL SETUSER", "hub-of-another", *rules)
        settings.BROKER_URL = settings.BROKER_URL.replace("://:of-tests-only@", "://hub-of-another:secret@")
        alpha = node("alpha")
        with caplog.at_level(logging.WARNING):
            assert [brokers.login_for_node(alpha, "localhost") for _ in range(2)] == [
                brokers.BrokerLogin()
            ] * 2
        assert caplog.text.count("+acl") == 1
        assert "secret" not in caplog.text

    def test_one_that_is_away_is_told_apart(self, settings: Settings) -> None:
        settings.BROKER_URL = "redis+socket://:x@/nowhere/valkey.sock"
        with pytest.raises(BrokerUnavailable):
            brokers.login_for_node(node("alpha"), "localhost")

    def test_one_that_is_busy_with_a_script_is_away_for_now(self, valkey: str) -> None:
        alpha = node("alpha")
        server, other = (redis.Redis.from_url(valkey) for _ in range(2))
        with server, other, ThreadPoolExecutor(1) as pool:
            server.config_set("busy-reply-threshold", 1)
            script = pool.submit(other.eval, "while true do end", 0)
            try:
                eventually(partial(_is_busy, server), 20, "the script runs")
                with pytest.raises(BrokerUnavailable, match="BUSY"):
                    brokers.login_for_node(alpha, "localhost")
            finally:
                server.script_kill()
                script.exception(20)
                server.config_set("busy-reply-threshold", 5000)

    def test_revoking_does_not_need_it(self, settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
        alpha = node("alpha")
        settings.BROKER_URL = "redis+socket://:x@/nowhere/valkey.sock"
        revoke_node(alpha)
        assert "could not be removed yet" in caplog.text
        assert Node.objects.get(pk=alpha.pk).revoked_at is not None


def _is_busy(server: redis.Redis) -> bool:
    try:
        server.ping()
    except redis.ResponseError:
        return True
    return False


@pytest.mark.slow
def test_one_process_wakes_several_nodes_by_their_own_users(settings: Settings, tmp_path: Path) -> None:
    before = celery.current_app._get_current_object()  # type: ignore[attr-defined]
    app = celery.Celery("sending", broker=settings.BROKER_URL, set_as_current=True)
    app.set_current()
    try:
        with listening([node("alpha"), node("beta")], tmp_path) as ears:
            for number in range(20):
                for ear in ears:
                    assert wake(ear.node, run_id(ear.node, number), 1)
            for ear in ears:
                wanted = [run_id(ear.node, number) for number in range(20)]
                eventually(partial(ear.has_heard, wanted), 20, ear.said)
    finally:
        before.set_current()
