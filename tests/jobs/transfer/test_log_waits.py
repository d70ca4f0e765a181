"""Requests for a log that wait for its next bytes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from starlette.applications import Starlette

from jobs.builds.models import BUILD_ATTEMPT, EnvironmentBuild
from jobs.byte_routes import routes
from jobs.logs import log_store
from jobs.models import Run
from jobs.scheduling import run_actions
from jobs.transfer import log_waits
from live import server_state
from live.fanout import is_watched
from live.topics import run_topic
from tests.jobs.builders import Played, ended, launched, node, running
from tests.jobs.raw import LOG, bearing
from tests.jobs.transfer.log_reader import Reader, summary, until
from tests.live.test_publish import layers
from tests.people import make_contributor, make_owner, make_viewer, principal_of, token_of
from trainhub.serving.__main__ import configuration
from trainhub.serving.limits import ConnectionLimits
from trainhub.serving.proxies import trusted_proxies
from trainhub.serving.server import HubServer
from trainhub_launch.log_names import ENVIRONMENT_LOG
from workspaces import people, tokens
from workspaces.models import ApiToken, User
from workspaces.states import Role

# The routes work in threads of their own, which only see what is committed.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]
THREADS_OF_THE_POOL = 40


@pytest.fixture
async def reader(client: httpx.AsyncClient) -> AsyncIterator[Reader]:
    def begin() -> tuple[Played, Run, str]:
        return *running(principal_of(make_contributor())), token_of(make_viewer())

    played, run, token = await sync_to_async(begin)()
    yield Reader(client, played, run, bearing(token))
    # Whatever ended a request, nothing of it is left.
    assert not log_waits._waits
    assert not is_watched(run_topic(run.pk))


@pytest.fixture
def only_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks at a log again without a message."""
    monkeypatch.setattr(log_waits, "LOOK_EVERY_S", 60.0)


class TestAnswer:
    @pytest.mark.usefixtures("only_messages")
    async def test_comes_with_the_bytes_as_soon_as_the_node_reports_them(self, reader: Reader) -> None:
        await reader.log(0, b"one\n")
        task = await reader.wait("offset=4&wait_s=20")
        await reader.log(4, b"two\n")
        assert summary(await task) == (b"two\n", "8", "false", "1")

    @pytest.mark.usefixtures("only_messages")
    async def test_of_one_request_after_another_has_every_line_once(self, reader: Reader) -> None:
        lines, received = [f"line {number}\n".encode() for number in range(20)], b""

        async def write() -> None:
            for number, line in enumerate(lines):
                await reader.log(len(b"".join(lines[:number])), line)

        writer = asyncio.create_task(write())
        while len(received) < len(b"".join(lines)):
            received += (await reader.read(f"offset={len(received)}&wait_s=20")).content
        await writer
        assert received == b"".join(lines)

    async def test_comes_without_a_message_too(self, reader: Reader) -> None:
        task = await reader.wait("wait_s=20")
        log_store.append(reader.run.pk, 1, LOG, 0, b"one\n")
        assert (await task).content == b"one\n"

    async def test_comes_without_the_channel_layer_too(self, reader: Reader, settings: Any) -> None:
        settings.CHANNEL_LAYERS = layers("unix:///nowhere.sock")
        task = asyncio.create_task(reader.read("wait_s=20"))
        await until(lambda: bool(log_waits._waits))
        log_store.append(reader.run.pk, 1, LOG, 0, b"one\n")
        assert (await task).content == b"one\n"

    async def test_comes_at_the_end_of_the_run(self, reader: Reader) -> None:
        await reader.log(0, b"one\n")
        task = await reader.wait("offset=4&wait_s=20")
        await sync_to_async(reader.played.finish)(reader.run)
        assert summary(await task) == (b"", "4", "true", "1")

    async def test_comes_when_the_time_is_over(self, reader: Reader) -> None:
        begin = time.monotonic()
        assert summary(await reader.read("offset=7&wait_s=0.3")) == (b"", "0", "false", "1")
        assert 0.3 <= time.monotonic() - begin < 10

    @pytest.mark.usefixtures("only_messages")
    async def test_is_not_disturbed_by_other_logs_and_other_changes(self, reader: Reader) -> None:
        task = await reader.wait("offset=4&wait_s=20")
        await sync_to_async(reader.played.log)(reader.run, "logs/other.txt", 0, b"other\n")
        await reader.log(0, b"one\n")
        owner = await sync_to_async(lambda: principal_of(make_owner()))()
        await sync_to_async(lambda: people.change_role(owner, _vera().memberships.get(), Role.CONTRIBUTOR))()
        await reader.log(4, b"two\n")
        assert (await task).content == b"two\n"

    @pytest.mark.parametrize("query", ["wait_s=20", "offset=1&limit=0&wait_s=20", "offset=4&wait_s=0"])
    async def test_comes_at_once_where_there_is_nothing_to_wait_for(self, reader: Reader, query: str) -> None:
        await reader.log(0, b"one\n")
        begin = time.monotonic()
        assert (await reader.read(query)).status_code == 200
        assert time.monotonic() - begin < 10

    async def test_comes_at_once_from_a_complete_log(self, reader: Reader) -> None:
        log_store.close(reader.run.pk, 1)
        begin = time.monotonic()
        assert summary(await reader.read("wait_s=20")) == (b"", "0", "true", "1")
        assert time.monotonic() - begin < 10


class TestAttempts:
    @pytest.mark.usefixtures("only_messages")
    async def test_a_new_attempt_ends_the_wait_for_the_latest(self, client: httpx.AsyncClient) -> None:
        def begin() -> tuple[Played, Run, str]:
            who = principal_of(make_contributor())
            played, run = Played(node()), launched(who, limits={"retries": 1})
            played.claim(run)
            return played, run, token_of(who.user)

        def retry() -> None:
            played.finish(run, ended(0, 1))
            run_actions.launch(run.pk)

        played, run, token = await sync_to_async(begin)()
        reader = Reader(client, played, run, bearing(token))
        task = await reader.wait("wait_s=20")
        await sync_to_async(retry)()
        assert summary(await task)[3] == "2"
        # Of the first attempt nothing more will come.
        assert summary(await reader.read("attempt=1&wait_s=20")) == (b"", "0", "true", "1")


class TestRefusals:
    @pytest.mark.parametrize("value", ["-1", "20.1", "21", "x", "nan", "inf", "1e1", "", "1_0", "٣"])
    async def test_a_value_that_is_no_number_of_seconds_is_named(self, reader: Reader, value: str) -> None:
        answer = await reader.read(f"wait_s={value}")
        assert answer.status_code == 400
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["detail"] == f"wait_s must be a number from 0 to 20, not {value!r}."

    @pytest.mark.usefixtures("only_messages")
    async def test_a_token_that_is_revoked_ends_the_wait(self, reader: Reader) -> None:
        task = await reader.wait("wait_s=20")
        await sync_to_async(lambda: tokens.revoke(ApiToken.objects.get(user__username="vera")))()
        assert (await task).status_code == 401

    async def test_a_person_who_leaves_the_workspace_gets_no_bytes(self, reader: Reader) -> None:
        task = await reader.wait("wait_s=20")
        # As if the message that the membership has ended was lost.
        await sync_to_async(lambda: _vera().memberships.all().delete())()
        await reader.log(0, b"secret\n")
        answer = await task
        assert answer.status_code == 401
        assert b"secret" not in answer.content

    async def test_a_run_that_is_deleted_has_no_log(self, reader: Reader) -> None:
        task = await reader.wait("wait_s=20")
        await Run.objects.filter(pk=reader.run.pk).aupdate(deleted_at="2026-01-01T00:00:00Z")
        await reader.log(0, b"one\n")
        assert (await task).status_code == 404


class TestLimits:
    @pytest.mark.usefixtures("only_messages")
    async def test_too_many_of_one_token_are_answered_at_once(
        self, reader: Reader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(log_waits, "MAX_WAITS_PER_TOKEN", 2)
        tasks = [await reader.wait("wait_s=20") for _ in range(2)]
        begin = time.monotonic()
        assert summary(await reader.read("wait_s=20")) == (b"", "0", "false", "1")
        assert time.monotonic() - begin < 10
        other = bearing(await sync_to_async(lambda: token_of(make_owner()))())
        tasks.append(await reader.wait("wait_s=20", other))
        await reader.log(0, b"one\n")
        assert [(await task).content for task in tasks] == [b"one\n"] * 3

    @pytest.mark.usefixtures("only_messages")
    async def test_too_many_of_all_are_answered_at_once(
        self, reader: Reader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(log_waits, "MAX_WAITS", 1)
        task = await reader.wait("wait_s=20")
        other = bearing(await sync_to_async(lambda: token_of(make_owner()))())
        begin = time.monotonic()
        assert summary(await reader.read("wait_s=20", other)) == (b"", "0", "false", "1")
        assert time.monotonic() - begin < 10
        await reader.log(0, b"one\n")
        assert (await task).content == b"one\n"

    @pytest.mark.usefixtures("only_messages")
    async def test_those_that_wait_need_no_threads(
        self, reader: Reader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(log_waits, "MAX_WAITS_PER_TOKEN", THREADS_OF_THE_POOL + 2)
        tasks = [await reader.wait("offset=0&wait_s=20") for _ in range(THREADS_OF_THE_POOL + 2)]
        async with asyncio.timeout(10):
            assert (await reader.read("offset=0")).content == b""
        await reader.log(0, b"one\n")
        assert {(await task).content for task in tasks} == {b"one\n"}


class TestClientThatLeaves:
    @pytest.mark.usefixtures("only_messages")
    async def test_ends_its_request(self, reader: Reader) -> None:
        headers = [(name.lower().encode(), value.encode()) for name, value in reader.headers.items()]
        scope = {
            "type": "http",
            "method": "GET",
            "path": f"/api/v1/runs/{reader.run.pk}/logs/{LOG}",
            "query_string": b"wait_s=20",
            "headers": headers,
        }
        application = Starlette(routes=routes)
        connection: Any = ApplicationCommunicator(application, scope)  # type: ignore[no-untyped-call]
        await connection.send_input({"type": "http.request", "body": b""})
        await until(lambda: bool(log_waits._waits))
        await connection.send_input({"type": "http.disconnect"})
        await connection.wait(10)


class TestServerThatStops:
    async def test_answers_those_that_wait_before_it_ends(
        self, reader: Reader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(server_state, "_stop", threading.Event())
        application = Starlette(routes=routes)
        server = HubServer(
            configuration(application, ConnectionLimits(100), trusted_proxies(), port=0, lifespan="off")
        )
        serving = asyncio.create_task(server.serve())
        await until(lambda: server.started)
        port = server.servers[0].sockets[0].getsockname()[1]
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            task = await replace(reader, client=client).wait("wait_s=20")
            server.should_exit = True
            assert summary(await task) == (b"", "0", "false", "1")
        await serving


class TestBuilds:
    async def test_have_logs_that_are_followed_in_the_same_way(self, reader: Reader) -> None:
        build = await EnvironmentBuild.objects.acreate(
            workspace_id=reader.run.workspace_id, node=reader.played.node, name="mine", version="1"
        )
        url = f"/api/v1/builds/{build.pk}/log?wait_s=20"
        task = asyncio.create_task(reader.client.get(url, headers=reader.headers, timeout=60))
        await until(lambda: is_watched(run_topic(build.pk)))
        log_store.append(build.pk, BUILD_ATTEMPT, ENVIRONMENT_LOG, 0, b"one\n")
        assert (await task).content == b"one\n"


def _vera() -> User:
    return User.objects.get(username="vera")
