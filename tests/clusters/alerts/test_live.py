"""Open pages are notified when an alert fires or clears."""

from __future__ import annotations

import pytest
from channels.db import database_sync_to_async

from clusters import consumers
from live.middleware import stack
from live.publish import flush
from tests.clusters.alerts.world import World
from tests.live.sockets import Watcher, with_token
from tests.people import make_viewer, token_of
from workspaces.http.scopes import principal_of_scope

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]


async def test_a_socket_of_all_nodes_hears_of_each_change_once() -> None:
    world = await database_sync_to_async(World)("GPU-a")
    await database_sync_to_async(flush)()
    token = await database_sync_to_async(lambda: token_of(make_viewer()))()
    socket = Watcher(stack(consumers.routes, principal_of_scope), "/ws/nodes/", with_token(token))
    assert await socket.opens()
    for state in ("lost", "ok"):
        await database_sync_to_async(world.lose)("GPU-a", state)
        await database_sync_to_async(world.minutes)(0.5)
        assert await socket.hears() == {"type": "alert.changed", "node": "alpha"}
    await socket.closes()
