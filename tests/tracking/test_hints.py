"""Live messages about new points and files, as the web server sends them: gathered between its rounds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.live.sockets import opened, with_token
from tests.people import make_viewer, token_of
from tracking.artifacts import file_hints
from tracking.metrics import point_hints
from workspaces import background_loop

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]


@pytest.fixture
def token() -> str:
    return token_of(make_viewer())


@pytest.fixture(autouse=True)
def _web_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process that has a background loop, whose rounds the tests play by hand."""
    monkeypatch.setattr(point_hints, "INTERVAL_S", 30.0)
    with background_loop.going():
        yield


async def test_the_first_points_are_published_at_once_and_the_next_ones_together(token: str) -> None:
    watcher = await opened("points", with_token(token))
    point_hints.points_added("points", ["loss"])
    assert await watcher.hears() == {"type": "metrics.added", "run": "points", "keys": ["loss"]}
    for keys in (["lr"], ["acc", "lr"]):
        point_hints.points_added("points", keys)
    assert await watcher.hears_nothing()
    point_hints.flush()
    assert await watcher.hears() == {"type": "metrics.added", "run": "points", "keys": ["acc", "lr"]}
    point_hints.flush()
    assert await watcher.hears_nothing()
    await watcher.closes()


async def test_a_run_that_has_paused_is_published_at_once_again(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher = await opened("paused", with_token(token))
    for key in ("loss", "acc"):
        monkeypatch.setattr(point_hints, "INTERVAL_S", -1.0)
        point_hints.flush()
        monkeypatch.setattr(point_hints, "INTERVAL_S", 30.0)
        point_hints.points_added("paused", [key])
        assert await watcher.hears() == {"type": "metrics.added", "run": "paused", "keys": [key]}
    await watcher.closes()


async def test_many_changes_of_a_runs_files_are_one_message(token: str) -> None:
    watcher = await opened("files", with_token(token))
    for _ in range(3):
        file_hints.files_changed("files")
    assert await watcher.hears_nothing()
    file_hints.flush()
    assert await watcher.hears() == {"type": "artifacts.changed", "run": "files"}
    file_hints.flush()
    assert await watcher.hears_nothing()
    await watcher.closes()
