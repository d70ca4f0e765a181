from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from channels.db import database_sync_to_async
from django.utils import timezone

from clusters import consumers
from clusters.models import Node
from clusters.node_reports import gpu_sync, heartbeat, heartbeat_writer
from live.middleware import stack
from tests.clusters.builders import beat, cluster, ready_node
from tests.live.sockets import Watcher, with_token
from tests.people import make_person, make_stranger, make_viewer, make_workspace, token_of
from workspaces import background_loop
from workspaces.http.scopes import principal_of_scope
from workspaces.models import User
from workspaces.states import Role

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]


def watcher(address: str, user: User) -> Watcher:
    token = token_of(user, user.workspaces.first())
    return Watcher(stack(consumers.routes, principal_of_scope), address, with_token(token))


async def watching(address: str, user: User) -> Watcher:
    socket: Watcher = await database_sync_to_async(watcher)(address, user)
    return socket


def private_to_speech(node: Node) -> None:
    node.cluster.workspaces.add(make_workspace("speech"))


def report(node: Node) -> None:
    heartbeat.apply(node, beat(cpu_pct=77.0), timezone.now() + timedelta(seconds=2))


def report_by_the_loop(node: Node) -> None:
    """The node reports numbers, which the background loop writes."""
    gpu_sync.refresh()
    with background_loop.going():
        assert heartbeat.apply_numbers(node, beat(cpu_pct=77.0), timezone.now() + timedelta(seconds=2))
    heartbeat_writer.write()


@pytest.fixture
def alpha() -> Node:
    return ready_node("alpha")


@pytest.mark.parametrize("address", ["/ws/nodes/alpha/", "/ws/nodes/"])
class TestNodeSocket:
    @pytest.mark.parametrize("change", [report, report_by_the_loop])
    async def test_tells_a_viewer_that_the_node_changed(
        self, change: Callable[[Node], None], address: str, alpha: Node
    ) -> None:
        socket = await watching(address, await database_sync_to_async(make_viewer)())
        assert await socket.opens()
        await database_sync_to_async(change)(alpha)
        assert await socket.hears() == {"type": "node.changed", "node": "alpha"}
        await socket.closes()

    async def test_is_refused_to_a_stranger(self, address: str, alpha: Node) -> None:
        def strangers_socket() -> Watcher:
            return Watcher(
                stack(consumers.routes, principal_of_scope),
                address,
                with_token(token_of(make_stranger(), make_workspace())),
            )

        assert not await (await database_sync_to_async(strangers_socket)()).opens()


class TestOtherWorkspaces:
    async def test_the_socket_of_a_node_they_may_not_use_is_refused(self, alpha: Node) -> None:
        await database_sync_to_async(private_to_speech)(alpha)
        assert not await (
            await watching("/ws/nodes/alpha/", await database_sync_to_async(make_viewer)())
        ).opens()

    async def test_the_socket_of_all_nodes_leaves_it_out(self, alpha: Node) -> None:
        def prepare() -> tuple[User, Node]:
            private_to_speech(alpha)
            own = ready_node("beta", cluster="lab")
            cluster("lab").workspaces.add(make_workspace("vision"))
            return make_person("vic", Role.VIEWER, make_workspace("vision")), own

        vic, own = await database_sync_to_async(prepare)()
        socket = await watching("/ws/nodes/", vic)
        assert await socket.opens()
        await database_sync_to_async(report)(alpha)
        await database_sync_to_async(report)(own)
        assert (await socket.hears())["node"] == "beta"
        await socket.closes()
