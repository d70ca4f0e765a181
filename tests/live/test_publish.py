from __future__ import annotations

import asyncio
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.db import transaction

from live.fanout import fanout
from live.messages import RunChanged
from live.publish import encode, envelope, flush, publish, publish_on_commit
from live.topics import run_topic
from tests.hub import eventually
from tests.live.sockets import event, opened, unopened, with_token
from tests.people import make_viewer, token_of
from trainhub.up.children import end_with_parent
from trainhub.up.valkey import Valkey, configured
from workspaces.models import User


def layers(url: str) -> dict[str, Any]:
    return {
        "default": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": [url]}}
    }


@contextmanager
def running(server: Valkey) -> Iterator[None]:
    process = subprocess.Popen(
        server.argv,
        stdout=subprocess.DEVNULL,
        preexec_fn=end_with_parent(),  # noqa: PLW1509 - only prctl
    )
    try:
        server.wait()
        yield
    finally:
        process.kill()
        process.wait(10)


pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]


@pytest.fixture
def vera() -> User:
    return make_viewer()


@pytest.fixture
def token(vera: User) -> str:
    return token_of(vera)


class TestRelay:
    async def test_every_socket_of_the_topic_hears_and_no_other(self, token: str) -> None:
        first, second, other = [await opened(run, with_token(token)) for run in ("a", "a", "b")]
        publish(run_topic("a"), event("a"))
        assert await first.hears() == await second.hears() == {"type": "event.added", "run": "a"}
        assert await other.hears_nothing()
        for socket in (first, second, other):
            await socket.closes()

    async def test_what_is_published_once_the_socket_is_open_arrives(self, token: str) -> None:
        for number in range(10):
            watcher = await opened(f"run{number}", with_token(token))
            publish(run_topic(f"run{number}"), event(f"run{number}"))
            assert (await watcher.hears())["run"] == f"run{number}"
            await watcher.closes()

    async def test_one_subscription_serves_all_and_ends_with_the_last(self, vera: User, token: str) -> None:
        watchers = [await opened("a", with_token(token)) for _ in range(20)]
        everything = {"run.a", f"access.{vera.pk}"}
        assert fanout().subscriptions == everything
        for watcher in watchers[1:]:
            await watcher.closes()
        assert fanout().subscriptions == everything
        await watchers[0].closes()
        assert fanout().subscriptions == frozenset()

    async def test_coming_and_going_at_once_leaves_a_working_subscription(self, token: str) -> None:
        leaving = [await opened("a", with_token(token)) for _ in range(5)]
        coming = [unopened("a", with_token(token)) for _ in range(5)]
        await asyncio.gather(*(socket.closes() for socket in leaving), *(socket.opens() for socket in coming))
        publish(run_topic("a"), event("a"))
        assert [await socket.hears() for socket in coming] == [event("a")] * 5


class TestPublish:
    async def test_from_other_threads_arrives_in_order(self, token: str) -> None:
        watcher = await opened("a", with_token(token))

        def publish_many() -> None:
            for attempt in range(100):
                publish(
                    run_topic("a"),
                    RunChanged(
                        type="run.changed", run="a", number=1, state="Running", reason="", attempt=attempt
                    ),
                )

        await asyncio.to_thread(publish_many)
        assert [(await watcher.hears())["attempt"] for _ in range(100)] == list(range(100))
        await watcher.closes()

    async def test_on_commit_waits_for_the_commit_and_dies_with_a_rollback(self, token: str) -> None:
        watcher = await opened("a", with_token(token))

        def write() -> None:
            with transaction.atomic():
                publish_on_commit(run_topic("a"), event("rolled back"))
                transaction.set_rollback(True)
            with transaction.atomic():
                publish_on_commit(run_topic("a"), event("committed"))
                publish(run_topic("a"), event("at once"))

        await database_sync_to_async(write)()
        assert [(await watcher.hears())["run"] for _ in range(2)] == ["at once", "committed"]
        await watcher.closes()

    async def test_never_raises_into_the_caller(
        self, caplog: pytest.LogCaptureFixture, settings: Any
    ) -> None:
        settings.CHANNEL_LAYERS = layers("unix:///nowhere.sock")
        publish(run_topic("a"), event("a"))
        publish(run_topic("a"), event("a"))
        assert await asyncio.to_thread(flush, 10)
        lost = [record.message for record in caplog.records if record.name == "live.publish"]
        counts = [re.match(r"live messages for run\.a are lost: (\d) of them", line) for line in lost]
        assert sum(int(count[1]) for count in counts if count) == 2

    async def test_drops_messages_while_too_many_wait(
        self, token: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        watcher = await opened("a", with_token(token))
        with monkeypatch.context() as patched:
            patched.setattr("live.publish.MAX_WAITING", 0)
            publish(run_topic("a"), event("dropped"))
        publish(run_topic("a"), event("sent"))
        assert (await watcher.hears())["run"] == "sent"
        assert caplog.messages == ["a live message for run.a is lost: 0 are waiting already"]
        await watcher.closes()

    async def test_messages_that_wait_are_sent_in_batches_and_keep_their_order(
        self, token: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("live.publish.MAX_BATCH_CHARACTERS", 300)
        batch_sizes: list[int] = []

        def note(topic: str, texts: Sequence[str]) -> dict[str, object]:
            batch_sizes.append(len(texts))
            return envelope(topic, texts)

        monkeypatch.setattr("live.publish.envelope", note)
        first, other = await opened("a", with_token(token)), await opened("b", with_token(token))

        def publish_at_once() -> None:
            with transaction.atomic():
                for number in range(20):
                    publish_on_commit(run_topic("a"), event(f"a{number}"))
                    publish_on_commit(run_topic("b"), event(f"b{number}"))

        await database_sync_to_async(publish_at_once)()
        for watcher, name in ((first, "a"), (other, "b")):
            assert [(await watcher.hears())["run"] for _ in range(20)] == [f"{name}{n}" for n in range(20)]
            await watcher.closes()
        assert sum(batch_sizes) == 40
        # The thread that sends may begin after the first of them.
        assert len(batch_sizes) < 30
        assert max(batch_sizes) <= 300 // len(encode(event("a0"))) + 1

    async def test_takes_no_time_of_the_caller(self) -> None:
        publish(run_topic("a"), event("a"))
        started = time.perf_counter()
        for _ in range(1000):
            publish(run_topic("a"), event("a"))
        assert time.perf_counter() - started < 0.5
        assert await asyncio.to_thread(flush, 10)


class TestProbe:
    async def test_after_the_layer_was_away_every_socket_is_told_to_fetch(
        self, token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any
    ) -> None:
        monkeypatch.setattr("live.fanout.PROBE_EVERY_S", 0.2)
        for name in ("run", "valkey"):
            (tmp_path / name).mkdir()
        server = configured(tmp_path, password="of-tests-only")
        settings.CHANNEL_LAYERS = layers(server.url)
        with running(server):
            watcher = await opened("a", with_token(token))
            here = fanout()
        await asyncio.to_thread(eventually, lambda: here.is_cut_off, 20, "the probe notices")
        with running(server):
            assert await watcher.hears() == {"type": "hint"}
            publish(run_topic("a"), event("a"))
            assert (await watcher.hears())["run"] == "a"
            await watcher.closes()
