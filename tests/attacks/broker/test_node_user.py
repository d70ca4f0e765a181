"""S11, and what held before it: what a node may do at Valkey with the user that the hub makes for it.

Each command of the server is tried, so that one which a new version brings is tried too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import celery
import pytest
import redis
from kombu.exceptions import KombuError
from pytest_django import Settings
from redis.exceptions import NoPermissionError

from clusters import brokers
from clusters.brokers.valkey import COMMANDS
from clusters.enrolment.node_tokens import enrol_node
from clusters.models import Node

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]
BEFORE_SIGN_IN = {"auth", "hello", "quit", "reset"}
"""What every client may send, also one without a password."""
OLD_RULES = (
    "reset",
    "resetchannels",
    "~node.alpha.*",
    "~_kombu.binding.node.alpha.*",
    "+ping",
    "+multi",
    "+exec",
    "+llen",
    "+brpop",
    "+lpush",
    "+sadd",
    "+smembers",
    "+evalsha",
    "+script|load",
    "+set",
    "+get",
    "+del",
    ">of-before",
    "on",
)
FOREIGN_KEYS = (
    "node.beta.wake",
    "node.alpha2.wake",
    "node.alpha.wake2",
    "node.alpha.unacked",
    "hub",
    "unacked",
    "_kombu.binding.hub",
    "_kombu.binding.node.alpha.wake",
    "asgi:x",
)


@pytest.fixture(autouse=True)
def _clean(valkey: str) -> Iterator[None]:
    brokers._logged.clear()
    brokers._renewed_brokers.clear()
    yield
    brokers._renewed_brokers.clear()
    with redis.Redis.from_url(valkey) as server:
        server.execute_command("ACL DELUSER", "node.alpha")
        server.flushall()


@pytest.fixture
def alpha() -> Node:
    return enrol_node("local", "alpha")[0]


def user(node: Node) -> redis.Redis:
    parts = urlsplit(brokers.login_for_node(node, "localhost").url)
    return redis.Redis(unix_socket_path=parts.path, username=parts.username, password=parts.password)


def commands(server: Any) -> dict[str, int]:
    """Every command of the server, and in place of one with subcommands each of these, with the number of its
    words."""
    found: dict[str, int] = {}
    for name, facts in server.execute_command("COMMAND").items():
        parts = [(sub[0].decode(), sub[1]) for sub in facts["subcommands"]] or [(name, facts["arity"])]
        found |= {part.lower(): abs(arity) for part, arity in parts}
    return found


class TestCommands:
    def test_none_is_allowed_but_waiting_at_the_own_queue(self, valkey: str, alpha: Node) -> None:
        user(alpha).close()
        with redis.Redis.from_url(valkey) as hub:
            every = commands(hub)
            allowed = set()
            for name, count in every.items():
                words = name.split("|")
                words += ["node.alpha.wake"] * (count - len(words))
                if b"permissions to run" not in hub.execute_command("ACL DRYRUN", "node.alpha", *words):
                    allowed.add(name)
            assert len(every) > 300
        assert allowed - BEFORE_SIGN_IN == set(COMMANDS) == {"ping", "brpop"}

    @pytest.mark.parametrize(
        "words",
        [
            "EVAL 'while~true~do~end' 0",
            "EVALSHA 0 0",
            "EVAL_RO x 0",
            "SCRIPT LOAD x",
            "SCRIPT KILL",
            "FCALL f 0",
            "FUNCTION LIST",
            "MULTI",
            "EXEC",
            "WATCH node.alpha.wake",
            "SMEMBERS node.alpha.wake",
            "ZRANGE node.alpha.wake 0 -1",
            "DEBUG SLEEP 1",
            "SADD _kombu.binding.node.alpha.wake hub",
            "LPUSH node.alpha.wake x",
            "SET node.alpha.wake x",
            "DEL node.alpha.wake",
            "SORT node.alpha.wake",
            "KEYS *",
            "BLPOP node.alpha.wake 1",
            "SUBSCRIBE x",
            "WAIT 1 0",
            "CLIENT PAUSE 10000",
            "FAILOVER",
            "SHUTDOWN NOSAVE",
            "CONFIG GET requirepass",
            "MIGRATE h 1 k 0 1",
            "RESTORE node.alpha.wake 0 x",
        ],
    )
    def test_that_block_the_server_or_write_to_it_are_refused(self, alpha: Node, words: str) -> None:
        with user(alpha) as own, pytest.raises(redis.ResponseError):
            own.execute_command(*words.replace("~", " ").split(" "))

    @pytest.mark.parametrize("key", FOREIGN_KEYS)
    def test_open_no_key_but_the_own_queue(self, alpha: Node, key: str) -> None:
        with user(alpha) as own:
            for keys in ([key], ["node.alpha.wake", key]):
                with pytest.raises(NoPermissionError):
                    own.execute_command("BRPOP", *keys, "0.1")

    def test_leave_others_their_speed(self, valkey: str, alpha: Node) -> None:
        """As many commands as the server takes, in batches as large as it takes, beside a client that
        measures."""
        batch = b"".join(
            b"*3\r\n$5\r\nBRPOP\r\n$15\r\nnode.alpha.wake\r\n$5\r\n0.001\r\n*1\r\n$4\r\nPING\r\n"
            for _ in range(2000)
        )
        with redis.Redis.from_url(valkey) as hub, user(alpha) as own:
            own.ping()
            line: Any = own.connection_pool.get_connection()
            worst = 0.0
            for _ in range(20):
                line._sock.sendall(batch)
                began = time.monotonic()
                hub.ping()
                worst = max(worst, time.monotonic() - began)
            line.disconnect()
        assert worst < 2.0


class TestForgery:
    def test_a_node_cannot_send_a_wake_up_to_itself_or_to_others(self, alpha: Node) -> None:
        url = brokers.login_for_node(alpha, "localhost").url
        with celery.Celery(broker=url, set_as_current=False) as app:
            for queue in ("node.alpha.wake", "node.beta.wake", "hub"):
                with pytest.raises((redis.ResponseError, KombuError, OSError)):
                    app.send_task(
                        "node.wake", kwargs={"run": "a" * 32, "attempt": 1}, queue=queue, retry=False
                    )

    def test_a_node_cannot_have_the_hub_send_its_wake_ups_to_another_queue(
        self, valkey: str, alpha: Node
    ) -> None:
        with user(alpha) as own, pytest.raises(NoPermissionError):
            own.sadd("_kombu.binding.node.alpha.wake", "node.alpha.wake\x06\x16\x06\x16hub")


class TestUpgrade:
    def test_users_of_the_version_before_have_the_new_rights_once_the_hub_has_started(
        self, valkey: str, alpha: Node, settings: Settings
    ) -> None:
        with redis.Redis.from_url(valkey) as server:
            server.execute_command("ACL SETUSER", "node.alpha", *OLD_RULES)
            parts = urlsplit(settings.BROKER_URL)
            with redis.Redis(unix_socket_path=parts.path, username="node.alpha", password="of-before") as old:
                old.lpush("node.alpha.wake", "x")
                brokers.repair_users()
                with pytest.raises(NoPermissionError):
                    old.lpush("node.alpha.wake", "x")
            again = redis.Redis(unix_socket_path=parts.path, username="node.alpha", password="of-before")
            with again, pytest.raises(redis.AuthenticationError):
                again.ping()

    def test_no_user_is_made_anew_after_that(self, valkey: str, alpha: Node) -> None:
        brokers.repair_users()
        with redis.Redis.from_url(valkey) as server:
            server.execute_command("ACL SETUSER", "node.alpha", "+llen")
            brokers.repair_users()
            assert "+llen" in " ".join(map(str, server.execute_command("ACL LIST")))
