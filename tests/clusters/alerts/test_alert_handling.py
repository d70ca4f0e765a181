"""Acknowledging and snoozing an alert, on its page and in the API: who may, what it silences, and for how
long."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from clusters.alerts import presenters
from clusters.alerts.unhealthy_gpus import faults_of
from clusters.models import Alert, Gpu, Node
from tests.clusters.alerts.test_alert_notifications import channel, event_names
from tests.clusters.alerts.world import World, alerts
from tests.people import (
    api_client,
    client_of,
    make_contributor,
    make_operator,
    make_person,
    make_viewer,
    make_workspace,
)
from workspaces.models import AuditEvent, User
from workspaces.states import Role

pytestmark = pytest.mark.django_db
JSON = "application/json"


@pytest.fixture
def world() -> World:
    """XID 48 on a free GPU."""
    world = World("GPU-a", "GPU-b")
    world.happen("xid", "GPU-a", 48)
    world.tick()
    return world


@pytest.fixture
def alert(world: World) -> Alert:
    return Alert.objects.get()


def call(alert: Alert, verb: str, who: User, method: str = "post", **body: Any) -> Any:
    client = api_client(who)
    return getattr(client, method)(f"/api/v1/alerts/{alert.pk}/{verb}/", body, JSON)


def page(client: Client, address: str = "/alerts/") -> str:
    return client.get(address).content.decode()


def count(client: Client) -> str:
    return page(client, "/alerts/count/")


def verbs() -> list[str]:
    return list(AuditEvent.objects.filter(verb__startswith="alert.").values_list("verb", flat=True))


class TestAcknowledge:
    def test_shows_who_has_seen_it_and_when(self, alert: Alert) -> None:
        told = call(alert, "acknowledge", make_operator()).json()
        assert told["acknowledged_by"] == make_operator().username
        assert told["acknowledged_at"]
        assert f"Acknowledged by {make_operator().username}" in page(client_of(make_viewer()))
        assert verbs() == ["alert.acknowledged"]

    def test_keeps_the_first_person(self, alert: Alert) -> None:
        call(alert, "acknowledge", make_operator())
        second = make_person("olga", Role.VIEWER)
        User.objects.filter(pk=second.pk).update(is_operator=True)
        told = call(alert, "acknowledge", User.objects.get(pk=second.pk)).json()
        assert told["acknowledged_by"] == make_operator().username
        assert verbs() == ["alert.acknowledged"]

    def test_of_one_that_has_cleared_is_refused(self, alert: Alert) -> None:
        Alert.objects.update(state="cleared")
        answer = call(alert, "acknowledge", make_operator())
        assert (answer.status_code, "has cleared meanwhile" in answer.json()["detail"]) == (409, True)
        form = client_of(make_operator()).post(f"/alerts/{alert.pk}/acknowledge/", follow=True)
        assert "The alert has cleared meanwhile; there is nothing left to do." in form.content.decode()
        assert verbs() == []

    def test_on_the_page_returns_to_the_page(self, alert: Alert) -> None:
        client = client_of(make_operator())
        address = f"/alerts/{alert.pk}/acknowledge/"
        assert client.post(address, {"next": "/nodes/alpha/"}).headers["Location"] == "/nodes/alpha/"
        assert client.post(address, {"next": "//evil.example/"}).headers["Location"] == "/alerts/"
        assert "Acknowledged by" in page(client, "/nodes/alpha/")


class TestWho:
    def test_a_contributor_may_not_handle_an_alert_about_a_machine(self, alert: Alert) -> None:
        answer = call(alert, "snooze", make_contributor(), **{"for": "1h"})
        assert answer.status_code == 403
        assert "handled by the operators" in answer.json()["detail"]
        assert ">Acknowledge" not in page(client_of(make_contributor()))
        assert ">Snooze" not in page(client_of(make_contributor()))

    def test_contributors_handle_alerts_about_runs_of_their_workspace(self) -> None:
        world = World("GPU-a")
        world.hold("GPU-a", workspace=make_workspace())
        world.set("GPU-a", utilization_pct=0.0)
        world.minutes(16)
        idle = alerts("gpu_idle").get()
        assert call(idle, "acknowledge", make_viewer()).status_code == 403
        other = make_person("mallory", Role.OWNER, make_workspace("other"))
        assert client_of(other).post(f"/alerts/{idle.pk}/acknowledge/").status_code == 403
        assert call(idle, "acknowledge", make_contributor()).status_code == 200

    def test_an_alert_of_another_workspaces_cluster_is_not_there(self, world: World, alert: Alert) -> None:
        world.node.cluster.workspaces.add(make_workspace("speech"))
        assert call(alert, "acknowledge", make_operator()).status_code == 404


class TestSnooze:
    def test_takes_it_out_of_the_count_but_not_off_the_page(self, alert: Alert) -> None:
        client = client_of(make_operator())
        assert "1 firing alert" in count(client)
        assert call(alert, "snooze", make_operator(), **{"for": "8h"}).status_code == 200
        assert "firing alert" not in count(client)
        assert "Snoozed by" in page(client)
        assert "Critical: XID error" not in page(client, "/")

    @pytest.mark.parametrize(("length", "hours"), [("1h", 1), ("8h", 8), ("1d", 24), ("7d", 168)])
    def test_lasts_as_long_as_asked(self, alert: Alert, length: str, hours: int) -> None:
        call(alert, "snooze", make_operator(), **{"for": length})
        alert.refresh_from_db()
        assert alert.snoozed_until is not None
        left = alert.snoozed_until - timezone.now()
        assert timedelta(hours=hours, minutes=-1) < left <= timedelta(hours=hours)

    def test_of_another_length_names_the_field(self, alert: Alert) -> None:
        answer = call(alert, "snooze", make_operator(), **{"for": "2h"})
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "for")
        form = client_of(make_operator()).post(f"/alerts/{alert.pk}/snooze/", {"for": "2h"}, follow=True)
        assert "For: must be one of 1h, 8h, 1d, 7d" in form.content.decode()
        assert verbs() == []

    def test_does_not_change_placement(self, alert: Alert) -> None:
        call(alert, "snooze", make_operator(), **{"for": "1d"})
        assert faults_of(Gpu.objects.all()) == {"GPU-a": "XID 48"}

    def test_channels_hear_nothing_while_it_lasts(self, world: World, alert: Alert) -> None:
        receiver = channel()
        call(alert, "snooze", make_operator(), **{"for": "1d"})
        world.happen("gpu_back", "GPU-a")
        world.tick(20, times=2)
        alert.refresh_from_db()
        assert (alert.state, event_names(receiver)) == ("cleared", [])

    def test_goes_on_when_the_condition_comes_back(self, world: World, alert: Alert) -> None:
        receiver = channel()
        call(alert, "snooze", make_operator(), **{"for": "1d"})
        world.happen("gpu_back", "GPU-a")
        world.tick(20, times=2)
        world.happen("xid", "GPU-a", 48)
        world.tick()
        again = alerts().last()
        assert again.pk != alert.pk
        assert (again.state, again.snoozed_by, event_names(receiver)) == (
            "firing",
            make_operator().username,
            [],
        )

    def test_when_it_ends_an_alert_that_still_fires_is_sent_again(self, world: World, alert: Alert) -> None:
        receiver = channel()
        Alert.objects.update(snoozed_until=world.now + timedelta(minutes=5), snoozed_by="oscar")
        world.minutes(2)
        assert event_names(receiver) == []
        world.minutes(4)
        assert event_names(receiver) == ["alert.fired"]
        alert.refresh_from_db()
        assert (alert.snoozed_until, alert.snoozed_by) == (None, "")

    def test_when_it_ends_an_acknowledged_alert_is_not_sent_again(self, world: World, alert: Alert) -> None:
        receiver = channel()
        call(alert, "acknowledge", make_operator())
        Alert.objects.update(snoozed_until=world.now + timedelta(minutes=1), snoozed_by="oscar")
        world.minutes(3)
        assert (event_names(receiver), presenters.firing_count(make_workspace())) == ([], 1)

    def test_can_be_ended_early(self, alert: Alert) -> None:
        call(alert, "snooze", make_operator(), **{"for": "7d"})
        assert call(alert, "snooze", make_operator(), "delete").json()["snoozed_until"] is None
        call(alert, "snooze", make_operator(), **{"for": "7d"})
        client_of(make_operator()).post(f"/alerts/{alert.pk}/end-snooze/")
        assert presenters.firing_count(make_workspace()) == 1
        assert verbs() == ["alert.snoozed", "alert.snooze_ended"] * 2


class TestDrain:
    def test_is_offered_to_operators_until_the_node_is_drained(self, alert: Alert) -> None:
        client = client_of(make_operator())
        assert "Drain alpha" in page(client)
        assert "Drain alpha" not in page(client_of(make_contributor()))
        answer = client.post("/nodes/alpha/drain/", {"next": "/alerts/"})
        assert answer.headers["Location"] == "/alerts/"
        assert Node.objects.get().drained_at is not None
        assert "Drain alpha" not in page(client)
