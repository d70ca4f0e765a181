from __future__ import annotations

import threading
import time

import pytest
from channels.db import database_sync_to_async
from django.utils import timezone

from clusters import consumers
from clusters.models import Node
from clusters.telemetry import intake, live_samples
from live.middleware import stack
from tests.clusters.builders import ready_node
from tests.live.sockets import Watcher, with_token
from tests.people import make_viewer, make_workspace, token_of
from trainhub_launch.report import Report
from trainhub_launch.telemetry import Block, pack
from workspaces import process_caches
from workspaces.http.scopes import principal_of_scope

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]


@pytest.fixture
def alpha() -> Node:
    process_caches.clear_all()
    return ready_node("alpha", "GPU-a")


async def watching(names: str) -> Watcher:
    def made() -> Watcher:
        user = make_viewer()
        app = stack(consumers.routes, principal_of_scope)
        return Watcher(
            app, "/ws/telemetry/", with_token(token_of(user, user.workspaces.first())), f"nodes={names}"
        )

    watcher: Watcher = await database_sync_to_async(made)()
    return watcher


def sample(node: Node, *subjects: str) -> None:
    """The node reports a sample of each GPU, GPU-a if none is named: 700 W, 600 W …"""
    uuids = subjects or ("GPU-a",)
    row = [{"power_w": 700.0 - 100 * place} for place, _ in enumerate(uuids)]
    block = Block(int(time.time()), 1, uuids, ("power_w",), pack([row], ("power_w",)))
    intake.ingest_telemetry(node, Report("agent", 1, time.time(), samples=(block,)), timezone.now())


class TestTelemetrySocket:
    async def test_brings_every_second_of_the_nodes_named(self, alpha: Node) -> None:
        beta = await database_sync_to_async(ready_node)("beta", "GPU-b")
        socket = await watching("alpha")
        assert await socket.opens()
        for node in (beta, alpha):
            await database_sync_to_async(sample)(node)
        message = await socket.hears()
        assert (message["type"], message["node"], message["gpus"]["values"]) == (
            "telemetry.sampled",
            "alpha",
            [[[700.0]]],
        )
        assert await socket.hears_nothing()
        await socket.closes()

    async def test_leaves_out_what_a_node_reports_of_gpus_that_are_not_its_own(self, alpha: Node) -> None:
        beta = await database_sync_to_async(ready_node)("beta", "GPU-b")
        socket = await watching("beta")
        assert await socket.opens()
        await database_sync_to_async(sample)(beta, "GPU-a", "GPU-b")
        gpus = (await socket.hears())["gpus"]
        assert (gpus["subjects"], gpus["values"]) == (["GPU-b"], [[[600.0]]])
        await socket.closes()

    async def test_tells_the_node_that_somebody_looks_and_for_a_moment_after(self, alpha: Node) -> None:
        assert not live_samples.wants_samples(alpha.pk)
        socket = await watching("alpha")
        assert await socket.opens()
        assert live_samples.wants_samples(alpha.pk)
        await socket.closes()
        assert live_samples.wants_samples(alpha.pk)
        process_caches.clear_all()
        assert not live_samples.wants_samples(alpha.pk)

    async def test_remembers_under_its_lock_that_somebody_looks(self, alpha: Node) -> None:
        """Else a thread that has just found an older moment forgets the newer one with it."""
        socket = await watching("alpha")
        assert await socket.opens()
        asking = threading.Thread(target=live_samples.wants_samples, args=(alpha.pk,))
        with live_samples._lock:
            asking.start()
            asking.join(0.5)
            assert asking.is_alive()
            assert alpha.pk not in live_samples._watched_at
        asking.join(10)
        assert alpha.pk in live_samples._watched_at
        await socket.closes()

    @pytest.mark.parametrize(
        "names", ["", ",", "nobody", "alpha,nobody", ",".join(f"n{number}" for number in range(65))]
    )
    async def test_for_nodes_that_are_not_there_is_refused(self, names: str, alpha: Node) -> None:
        assert not await (await watching(names)).opens()

    async def test_for_a_node_of_other_workspaces_is_refused(self, alpha: Node) -> None:
        await database_sync_to_async(lambda: alpha.cluster.workspaces.add(make_workspace("speech")))()
        assert not await (await watching("alpha")).opens()
