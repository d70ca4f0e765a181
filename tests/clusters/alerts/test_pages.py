"""Alerts on pages and in the API: order, history, runs, and which workspaces see them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from clusters.alerts.daily_counts import DAYS, HEIGHT, daily_counts
from clusters.models import Alert
from tests.clusters.alerts.world import World
from tests.clusters.builders import GIB, cluster
from tests.people import api_client, client_of, make_person, make_stranger, make_viewer, make_workspace
from workspaces.models import User
from workspaces.states import Role

pytestmark = pytest.mark.django_db
API = "/api/v1/alerts/"


def text(client: Client, address: str = "/alerts/", **headers: str) -> str:
    answer = client.get(address, headers=headers)
    assert answer.status_code == 200, answer.status_code
    return answer.content.decode().replace("&#x27;", "'")


def speaker() -> User:
    return make_person("sally", Role.VIEWER, make_workspace("speech"))


@pytest.fixture
def world() -> World:
    """GPU-a of run 41 is lost; the disk was full and is not any more."""
    found = World("GPU-a", "GPU-b")
    found.hold("GPU-a", workspace=make_workspace())
    found.vitals["disk_free_bytes"] = GIB
    found.tick()
    found.vitals["disk_free_bytes"] = 90 * GIB
    found.minutes(1.5)
    found.lose("GPU-a")
    found.tick()
    assert list(Alert.objects.order_by("pk").values_list("kind", "state")) == [
        ("node_disk", "cleared"),
        ("gpu_lost", "firing"),
    ]
    return found


class TestDays:
    def test_count_what_fired_by_day_and_severity(self, world: World) -> None:
        cleared, firing = Alert.objects.order_by("pk")
        today = timezone.now()
        Alert.objects.filter(pk=firing.pk).update(fired_at=today)
        Alert.objects.filter(pk=cleared.pk).update(fired_at=today - timedelta(days=2), severity="warning")
        days = daily_counts(Alert.objects.all())
        assert len(days) == DAYS
        assert [day.counts for day in days[-3:]] == [(("warning", 1),), (), (("critical", 1),)]
        assert [bar.height for day in days for bar in day.bars] == [HEIGHT, HEIGHT]
        page = text(client_of(make_viewer()))
        assert f"{today:%-d %b}: 1 critical. " in page

    def test_both_severities_of_a_day_stand_on_each_other(self, world: World) -> None:
        Alert.objects.update(fired_at=timezone.now())
        Alert.objects.filter(state="cleared").update(severity="warning")
        critical, warning = daily_counts(Alert.objects.all())[-1].bars
        assert (critical.severity, critical.y, critical.height) == ("critical", HEIGHT / 2, HEIGHT / 2)
        assert (warning.severity, warning.y, warning.height) == ("warning", 0, HEIGHT / 2)

    def test_follow_the_filters_and_are_not_drawn_without_any(self, world: World) -> None:
        client = client_of(make_viewer())
        Alert.objects.update(fired_at=timezone.now())
        assert "Fired per day" in text(client, "/alerts/?kind=gpu_lost")
        assert "Fired per day" not in text(client, "/alerts/?kind=gpu_hot")
        Alert.objects.update(fired_at=timezone.now() - timedelta(days=DAYS + 1))
        assert "Fired per day" not in text(client)


class TestPage:
    def test_what_fires_stands_above_what_has_cleared(self, world: World) -> None:
        page = text(client_of(make_viewer()))
        assert (
            page.index("Critical: GPU lost")
            < page.index("Cleared alerts")
            < page.index("GiB are free where it stores runs")
        )
        assert "it is held by run 41" in page
        for address in ("/nodes/alpha/", "/gpus/GPU-a/", f"/runs/id/{'a' * 32}/"):
            assert f'href="{address}"' in page

    def test_another_workspace_reads_no_run(self, world: World) -> None:
        page = text(client_of(speaker()))
        assert "it is held by a run of another workspace" in page
        assert "run 41" not in page
        assert "aaaa" not in page

    def test_nodes_of_other_workspaces_clusters_do_not_show(self, world: World) -> None:
        cluster().workspaces.add(make_workspace("speech"))
        page = text(client_of(make_viewer()))
        assert "GPU lost" not in page.split('id="alerts"')[1]
        assert "No alerts are firing" in page
        assert "GPU lost:" not in text(client_of(make_viewer()), "/")

    def test_can_be_narrowed(self, world: World) -> None:
        client = client_of(make_viewer())
        assert "GPU 0 of alpha" not in text(client, "/alerts/?state=cleared")
        assert "keeps runs" not in text(client, "/alerts/?kind=gpu_lost")
        assert "No firing alert matches these filters" in text(client, "/alerts/?severity=warning")
        assert "No firing alert matches these filters" in text(client, "/alerts/?node=beta")
        assert "GPU 0 of alpha" in text(client, f"/alerts/?run={'a' * 32}")
        assert "GPU 0 of alpha" not in text(client_of(speaker()), f"/alerts/?run={'a' * 32}")

    def test_a_refresh_gets_only_the_part_that_changes(self, world: World) -> None:
        part = text(client_of(make_viewer()), HX_Request="true")
        assert "GPU lost" in part
        assert "<html" not in part

    def test_the_rail_of_every_page_tells_how_many_fire(self, world: World) -> None:
        client = client_of(make_viewer())
        assert "1 firing alert" in text(client, "/settings/")
        assert "1 firing alert" in text(client, "/alerts/count/")
        Alert.objects.update(state="cleared", cleared_at=world.now)
        assert "firing" not in text(client, "/alerts/count/")

    def test_the_page_of_an_unknown_address_has_the_frame_of_every_page(self, world: World) -> None:
        page = client_of(make_viewer()).get("/no/such/page/")
        assert page.status_code == 404
        assert "1 firing alert" in page.content.decode()
        assert '<li class="th-workspace">' in page.content.decode()

    def test_the_dashboard_and_the_node_show_what_fires(self, world: World) -> None:
        client = client_of(make_viewer())
        for address in ("/", "/nodes/alpha/"):
            assert "Critical: GPU lost" in text(client, address), address

    @pytest.mark.parametrize("address", ["/alerts/", "/alerts/count/", API])
    def test_a_stranger_finds_nothing(self, address: str) -> None:
        assert client_of(make_stranger()).get(address).status_code == 404
        assert Client().get(address).status_code in (302, 401)


class TestApi:
    def told(self, user: User, query: str = "") -> list[dict[str, Any]]:
        return list(api_client(user).get(f"{API}{query}").json()["results"])

    def test_tells_each_with_where_and_whose_it_is(self, world: World) -> None:
        lost, disk = self.told(make_viewer())
        assert (
            lost.items()
            >= {
                "kind": "gpu_lost",
                "state": "firing",
                "severity": "critical",
                "node": "alpha",
                "cluster": "local",
                "gpu": "GPU-a",
                "gpu_index": 0,
                "run": "a" * 32,
                "run_title": "run 41",
            }.items()
        )
        assert [disk[name] for name in ("kind", "state", "gpu", "gpu_index", "run")] == [
            "node_disk",
            "cleared",
            "",
            None,
            "",
        ]
        assert disk["cleared_at"] > disk["fired_at"]

    def test_can_be_narrowed(self, world: World) -> None:
        found = {
            query: [item["kind"] for item in self.told(make_viewer(), query)]
            for query in (
                "?state=firing",
                "?kind=node_disk",
                "?node=beta",
                f"?run={'a' * 32}",
                f"?run={'b' * 32}",
            )
        }
        assert list(found.values()) == [["gpu_lost"], ["node_disk"], [], ["gpu_lost"], []]

    def test_goes_page_by_page(self, world: World) -> None:
        program = api_client(make_viewer())
        first = program.get(f"{API}?page_size=1").json()
        second = program.get(first["next"]).json()
        assert [first["results"][0]["kind"], second["results"][0]["kind"]] == ["gpu_lost", "node_disk"]

    @pytest.mark.parametrize("query", ["?state=pending", "?kind=nothing", "?severity=high", "?colour=red"])
    def test_a_wrong_parameter_is_named(self, query: str) -> None:
        answer = api_client(make_viewer()).get(f"{API}{query}")
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (
            400,
            query[1:].split("=", maxsplit=1)[0],
        )
