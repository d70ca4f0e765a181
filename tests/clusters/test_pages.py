from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone

from clusters import heartbeat
from clusters.enrolment import enrol, revoke
from clusters.leases import acquire
from clusters.models import Hearing, Node
from tests.clusters.builders import GIB, beat, cluster, gpu, gpus_wanted, ready_node
from tests.people import api_client, client_of, make_contributor, make_stranger, make_viewer, make_workspace

pytestmark = pytest.mark.django_db


def text_of(client: Client, address: str, **headers: str) -> str:
    response = client.get(address, headers=headers)
    assert response.status_code == 200, response.status_code
    return response.content.decode()


def lease(label: str, slug: str = "default") -> None:
    with transaction.atomic():
        acquire(cluster(), gpus_wanted(1), holder=label * 8, attempt=1, label=f"run {label}", workspace=make_workspace(slug))


class TestClustersPage:
    def test_shows_each_node_with_what_is_free_and_what_holds_the_rest(self) -> None:
        ready_node("alpha", "GPU-a", "GPU-b")
        lease("4141")
        page = text_of(client_of(make_viewer()), "/clusters/")
        for words in ("alpha", "Ready", "1 of 2 GPUs free", "32 process slots free", "10.0.0.7", "run 4141"):
            assert words in page.replace("<strong>", "").replace("</strong>", ""), words

    def test_a_node_without_gpus_says_so(self) -> None:
        ready_node("alpha")
        assert "no GPU; 32 process slots" in text_of(client_of(make_viewer()), "/clusters/")

    def test_before_any_node_it_says_how_one_comes(self) -> None:
        assert "manage.py up" in text_of(client_of(make_viewer()), "/clusters/")

    def test_a_refresh_gets_only_the_part_that_changes(self) -> None:
        ready_node("alpha")
        part = text_of(client_of(make_viewer()), "/clusters/", HX_Request="true")
        assert "alpha" in part
        assert "<html" not in part

    def test_the_runs_of_other_workspaces_are_only_busy(self) -> None:
        ready_node("alpha", "GPU-a")
        lease("4141", slug="speech")
        page = text_of(client_of(make_viewer()), "/clusters/")
        assert "busy" in page
        assert "4141" not in page

    def test_clusters_of_other_workspaces_do_not_show(self) -> None:
        ready_node("alpha", cluster="private")
        cluster("private").workspaces.add(make_workspace("speech"))
        assert "alpha" not in text_of(client_of(make_viewer()), "/clusters/")


class TestNodePage:
    def test_shows_facts_interpreters_and_live_numbers(self) -> None:
        node, _ = enrol("local", "alpha")
        told = gpu("GPU-a", utilization_pct=87.0, memory_used_bytes=70 * GIB, power_w=512.0, temperature_c=61.0)
        heartbeat.apply(node, beat(told, mpi="Open MPI 4.1.4", run_as="trainer"), timezone.now())
        page = text_of(client_of(make_viewer()), "/nodes/alpha/")
        for words in ("GPU-a", "NVIDIA H200", "87 %", "70 GiB", "512 W", "61 °C", "Open MPI 4.1.4", "trainer", "bin/python3"):
            assert words in page, words

    def test_a_number_that_the_device_cannot_tell_is_absent_not_zero(self) -> None:
        ready_node("alpha", "GPU-a")
        page = text_of(client_of(make_viewer()), "/nodes/alpha/")
        assert "Power" not in page
        assert "0 W" not in page

    def test_a_silent_node_says_what_that_means(self) -> None:
        node = ready_node("alpha")
        now = timezone.now()
        Hearing.objects.create(pk=1, since=now - timedelta(days=1), until=now + timedelta(days=1))
        Node.objects.filter(pk=node.pk).update(last_report_at=now - timedelta(minutes=5))
        page = text_of(client_of(make_viewer()), "/nodes/alpha/")
        assert "Lost" in page
        assert "Check that the machine is up" in page

    def test_a_revoked_node_says_how_to_bring_it_back(self) -> None:
        revoke(ready_node("alpha"))
        assert "manage.py node token alpha" in text_of(client_of(make_viewer()), "/nodes/alpha/")

    def test_what_a_node_says_of_itself_is_shown_as_text(self) -> None:
        ready_node("alpha", hostname="<script>alert(1)</script>")
        assert "<script>alert(1)" not in text_of(client_of(make_viewer()), "/nodes/alpha/")


class TestAccess:
    @pytest.mark.parametrize("address", ["/clusters/", "/nodes/alpha/", "/api/v1/clusters/", "/api/v1/nodes/alpha/"])
    def test_a_stranger_finds_nothing(self, address: str) -> None:
        ready_node("alpha")
        assert client_of(make_stranger()).get(address).status_code == 404
        assert client_of(None).get(address).status_code in (302, 401)

    @pytest.mark.parametrize("address", ["/nodes/beta/", "/api/v1/nodes/beta/"])
    def test_a_node_of_another_workspace_is_not_there(self, address: str) -> None:
        ready_node("beta", cluster="private")
        cluster("private").workspaces.add(make_workspace("speech"))
        assert client_of(make_contributor()).get(address).status_code == 404


class TestApi:
    def test_lists_clusters_with_what_is_free(self) -> None:
        ready_node("alpha", "GPU-a", "GPU-b")
        lease("4141")
        (found,) = api_client(make_viewer()).get("/api/v1/clusters/").json()
        assert (found["name"], found["kind"], found["nodes"]) == ("local", "agent", ["alpha"])
        assert [found[name] for name in ("gpus", "gpus_free", "slots", "slots_free")] == [2, 1, 32, 32]

    def test_tells_a_node_with_its_gpus_and_what_holds_them(self) -> None:
        ready_node("alpha", "GPU-a", "GPU-b")
        lease("4141")
        found = api_client(make_viewer()).get("/api/v1/nodes/alpha/").json()
        assert (found["name"], found["status"], found["slots_free"]) == ("alpha", "ready", 32)
        assert [device["held"] and device["held"]["title"] for device in found["gpus"]] == ["run 4141", None]
        assert found["gpus"][0]["power_w"] is None
        assert found["leases"][0]["run"] == "4141" * 8

    def test_nothing_can_be_written(self) -> None:
        assert api_client(make_contributor()).post("/api/v1/clusters/", {}).status_code == 405
