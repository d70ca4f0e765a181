from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async

from jobs.consumers import routes
from jobs.models import Run
from jobs.scheduling import run_actions
from live.middleware import stack
from live.publish import flush
from tests.jobs.builders import queued
from tests.jobs.raw import other_token, stranger_token
from tests.live.sockets import HOST, Watcher, with_token
from tests.people import make_contributor, make_viewer, principal_of, token_of
from workspaces.http.scopes import principal_of_scope

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]


@sync_to_async
def a_run() -> Run:
    run = queued(principal_of(make_contributor()))
    assert flush(10)
    return run


@sync_to_async
def canceled(run: Run) -> None:
    run_actions.cancel(run, make_contributor())


def socket(path: str, token: str | None) -> Watcher:
    return Watcher(stack(routes, principal_of_scope), path, with_token(token) if token else [HOST])


async def viewers_token() -> str:
    return await sync_to_async(lambda: token_of(make_viewer()))()


class TestRun:
    async def test_a_viewer_is_told_when_the_run_changes(self) -> None:
        run = await a_run()
        watcher = socket(f"/ws/runs/{run.pk}/", await viewers_token())
        assert await watcher.opens()
        await canceled(run)
        assert [(await watcher.hears())["type"], (await watcher.hears())["type"]] == [
            "event.added",
            "run.changed",
        ]
        await watcher.closes()

    @pytest.mark.parametrize("make", [None, other_token, stranger_token])
    async def test_people_outside_the_workspace_are_not_let_in(self, make: Any) -> None:
        run = await a_run()
        token = await sync_to_async(make)() if make else None
        assert not await socket(f"/ws/runs/{run.pk}/", token).opens()

    async def test_a_run_that_is_not_there_is_refused(self) -> None:
        await a_run()
        assert not await socket("/ws/runs/nope/", await viewers_token()).opens()


class TestRunList:
    async def test_tells_of_every_run_of_the_workspace_and_of_no_other(self) -> None:
        run = await a_run()
        mine = socket("/ws/runs/", await viewers_token())
        other = socket("/ws/runs/", await sync_to_async(other_token)())
        assert await mine.opens()
        assert await other.opens()
        await canceled(run)
        message = await mine.hears()
        assert (message["type"], message["run"], message["state"]) == ("run.changed", run.pk, "Canceled")
        assert await other.hears_nothing()
        await mine.closes()
        await other.closes()
