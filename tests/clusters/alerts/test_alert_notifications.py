"""From a condition to a receiver: which alerts are sent to whom, once, and with which body."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import timezone

from tests.clusters.alerts.world import World
from tests.clusters.builders import GIB, cluster
from tests.people import make_contributor, make_workspace
from tests.workspaces.notifications.receiver import Receiver
from workspaces.models import Channel, Delivery
from workspaces.notifications import delivery

pytestmark = pytest.mark.django_db


def channel(slug: str = "default", *events: str, **changed: Any) -> Channel:
    wanted = events or ("alert.critical", "alert.cleared")
    fields = {"kind": "webhook", "name": slug, "target": "http://127.0.0.1:9/", "events": list(wanted)}
    return Channel.objects.create(workspace=make_workspace(slug), **{**fields, **changed})


def event_names(channel: Channel) -> list[str]:
    return list(Delivery.objects.filter(channel=channel).order_by("pk").values_list("event", flat=True))


@pytest.fixture
def world() -> World:
    scene = World("GPU-a", "GPU-b")
    scene.hold("GPU-a", workspace=make_workspace())
    scene.tick()
    return scene


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    scene = Receiver()
    yield scene
    scene.stop()


def lose_and_find(world: World) -> None:
    world.lose("GPU-a")
    world.minutes(1)
    world.lose("GPU-a", "ok")
    world.minutes(2)


class TestToAReceiver:
    def test_an_alert_arrives_once_when_it_fires_and_once_when_it_clears(
        self, world: World, receiver: Receiver
    ) -> None:
        channel(target=receiver.url)
        lose_and_find(world)
        for _ in range(3):
            delivery.tick(max(timezone.now(), world.now))
        fired, cleared = (got.body for got in receiver.got)
        assert [fired["event"], cleared["event"]] == ["alert.fired", "alert.cleared"]
        assert fired.keys() == cleared.keys() == {"event", "at", "text", "url", "alert", "node", "gpu", "run"}
        assert [fired["alert"][name] for name in ("kind", "severity", "state")] == [
            "gpu_lost",
            "critical",
            "firing",
        ]
        assert fired["alert"]["cleared_at"] is None
        assert fired["node"] == {"name": "alpha", "cluster": "local"}
        assert fired["gpu"] == {"uuid": "GPU-a", "index": 0, "name": "NVIDIA H200"}
        assert fired["run"] == {"id": "a" * 32, "title": "run 41"}
        assert fired["text"].startswith("[critical] GPU lost on alpha, since ")
        assert "it is held by run 41" in fired["text"]
        assert fired["url"].endswith(f"/alerts/#alert-{fired['alert']['id']}")
        assert cleared["text"].startswith("[cleared] GPU lost on alpha")
        assert cleared["alert"]["cleared_at"]


class TestWhoIsTold:
    def test_only_who_asked_for_that_severity(self, world: World) -> None:
        both, warnings = channel(), channel("default", "alert.warning", "alert.cleared")
        cleared = channel("default", "alert.cleared")
        lose_and_find(world)
        assert [event_names(item) for item in (both, warnings, cleared)] == [
            ["alert.fired", "alert.cleared"],
            [],
            [],
        ]

    def test_another_workspace_is_not_told_whose_run_it_is(self, world: World) -> None:
        theirs = channel("speech")
        lose_and_find(world)
        body = Delivery.objects.filter(channel=theirs).first().body  # type: ignore[union-attr]
        assert body["run"] is None
        assert "a run of another workspace" in body["text"]
        assert "aaaa" not in str(body)

    def test_only_workspaces_that_may_use_the_cluster(self, world: World) -> None:
        cluster().workspaces.add(make_workspace("speech"))
        ours, theirs = channel(), channel("speech")
        lose_and_find(world)
        assert (event_names(ours), event_names(theirs)) == ([], ["alert.fired", "alert.cleared"])

    def test_who_wants_only_what_concerns_their_runs(self, world: World) -> None:
        ours, theirs = channel(ours_only=True), channel("speech", ours_only=True)
        lose_and_find(world)
        world.vitals["disk_free_bytes"] = GIB
        world.tick()
        assert (event_names(ours), event_names(theirs)) == (["alert.fired", "alert.cleared"], [])

    def test_a_persons_own_channel_hears_of_alerts_too(self, world: World) -> None:
        own = channel(user=make_contributor())
        lose_and_find(world)
        assert event_names(own) == ["alert.fired", "alert.cleared"]

    def test_what_is_only_pending_is_told_to_nobody(self, world: World) -> None:
        channel("default", "alert.warning")
        world.set("GPU-a", utilization_pct=0.0)
        world.minutes(5)
        assert not Delivery.objects.exists()
