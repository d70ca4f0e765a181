from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from clusters.enrolment.join import join
from clusters.enrolment.node_tokens import enrol_node
from clusters.leases import acquire
from clusters.models import JoinToken, Lease
from clusters.node_reports import heartbeat
from tests.clusters.builders import GIB, beat, cluster, gpu, gpus_wanted, ready_node
from tests.people import (
    api_client,
    client_of,
    make_contributor,
    make_operator,
    make_owner,
    make_stranger,
    make_viewer,
    make_workspace,
)
from trainhub_launch.machine import GPU_LOST
from trainhub_launch.telemetry import GpuProcess
from workspaces.models import AuditEvent, User

pytestmark = pytest.mark.django_db


def text_of(client: Client, address: str, **headers: str) -> str:
    response = client.get(address, headers=headers)
    assert response.status_code == 200, response.status_code
    return response.content.decode()


def lease(label: str, slug: str = "default") -> None:
    with transaction.atomic():
        acquire(
            cluster(),
            gpus_wanted(1),
            holder=label * 8,
            attempt=1,
            label=f"run {label}",
            workspace=make_workspace(slug),
        )


@pytest.mark.parametrize(
    ("clusters", "expected"),
    [((), "local"), (("gang",), "gang"), (("gang", "other"), "other"), (("other", "gang"), "gang")],
)
def test_a_machine_is_added_to_the_only_cluster_or_the_one_that_grew_last(
    db: None, clusters: tuple[str, ...], expected: str
) -> None:
    for number, name in enumerate(clusters):
        enrol_node(name, f"node-{number}")
    assert f'name="cluster" value="{expected}"' in text_of(client_of(make_operator()), "/clusters/add/")


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


class TestAccess:
    @pytest.mark.parametrize(
        "address", ["/clusters/", "/nodes/alpha/", "/api/v1/clusters/", "/api/v1/nodes/alpha/"]
    )
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
        assert api_client(make_contributor()).post("/api/v1/nodes/", {}).status_code == 405


class TestAddMachine:
    def test_shows_the_command_once_and_then_the_machine_that_joined(self) -> None:
        browser = client_of(make_operator())
        page = browser.post("/clusters/add/", {"cluster": "gang", "name": "gpu-b"})
        found = re.search(r"join http://127.0.0.1:8000 --token (thj_\S+)", page.content.decode())
        assert found
        assert page.headers["Cache-Control"] == "no-store, no-transform"
        state = f"/clusters/invitations/{JoinToken.objects.get().pk}/"
        assert "Waiting for the machine" in text_of(browser, state)
        join(found[1], "", "box.lan")
        assert "gpu-b</a> has joined" in text_of(browser, state)
        assert found[1] not in text_of(browser, state)

    def test_says_when_other_machines_cannot_reach_this_hub(self, settings: Settings) -> None:
        browser = client_of(make_operator())
        assert "OPEN=1" in text_of(browser, "/clusters/add/")
        settings.API_URL = "https://10.0.0.1:8000"
        assert "OPEN=1" not in text_of(browser, "/clusters/add/")

    @pytest.mark.parametrize(
        ("cluster", "name"), [("", "gpu-b"), ("a b", ""), ("gang", "gpu/b"), ("gang", "x" * 51)]
    )
    def test_a_wrong_name_is_told_at_its_field(self, cluster: str, name: str) -> None:
        answer = client_of(make_operator()).post("/clusters/add/", {"cluster": cluster, "name": name})
        assert answer.status_code == 400
        assert 'class="th-error"' in answer.content.decode()
        assert not JoinToken.objects.exists()

    @pytest.mark.parametrize("make", [make_viewer, make_contributor, make_owner])
    def test_is_for_operators_alone(self, make: Callable[[], User]) -> None:
        ready_node("alpha")
        browser = client_of(make())
        answers = [
            browser.get("/clusters/add/"),
            browser.post("/clusters/add/", {"cluster": "gang"}),
            browser.get("/clusters/invitations/1/"),
            browser.post("/nodes/alpha/revoke/"),
        ]
        assert [answer.status_code for answer in answers] == [403] * 4
        assert "Add a machine" not in text_of(browser, "/clusters/")
        assert "Revoke" not in text_of(browser, "/nodes/alpha/")
        assert not JoinToken.objects.exists()


class TestOperatorsApi:
    def test_a_machine_may_be_invited_only_to_be_watched(self) -> None:
        asked = {"cluster": "gang", "name": "watched", "monitor_only": True}
        assert (
            api_client(make_operator())
            .post("/api/v1/nodes/invitations/", asked, "application/json")
            .status_code
            == 201
        )
        client_of(make_operator()).post(
            "/clusters/add/", {"cluster": "gang", "name": "too", "monitor_only": "on"}
        )
        assert list(JoinToken.objects.values_list("name", "monitor_only")) == [
            ("watched", True),
            ("too", True),
        ]

    def test_invites_with_a_token_and_a_command(self) -> None:
        told = api_client(make_operator()).post(
            "/api/v1/nodes/invitations/", {"cluster": "gang"}, "application/json"
        )
        assert told.status_code == 201
        assert told.json()["token"] in told.json()["command"]
        assert join(told.json()["token"], "gpu-b", "").node.cluster.name == "gang"

    def test_a_wrong_name_names_its_field(self) -> None:
        asked = {"cluster": "gang", "name": "a/b"}
        answer = api_client(make_operator()).post("/api/v1/nodes/invitations/", asked, "application/json")
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "name")

    def test_revokes_and_changes_nothing_the_second_time(self) -> None:
        ready_node("alpha")
        program = api_client(make_operator())
        assert [program.post("/api/v1/nodes/alpha/revoke/").json()["status"] for _ in range(2)] == [
            "revoked"
        ] * 2
        assert AuditEvent.objects.filter(verb="node.revoked").count() == 1
        assert program.post("/api/v1/nodes/beta/revoke/").status_code == 404

    @pytest.mark.parametrize("address", ["/api/v1/nodes/invitations/", "/api/v1/nodes/alpha/revoke/"])
    def test_is_closed_to_everybody_else(self, address: str) -> None:
        ready_node("alpha")
        assert api_client(make_owner()).post(address).status_code == 403
        assert Client().post(address).status_code == 401


class TestGpuModels:
    def test_a_cluster_tells_what_its_nodes_have_and_the_api_what_is_known_of_it(self) -> None:
        ready_node("alpha", "GPU-a", "GPU-b")
        client = api_client(make_viewer())
        (found,) = client.get("/api/v1/clusters/").json()
        assert found["gpu_models"] == [
            {"name": "NVIDIA H200", "count": 2, "memory_bytes": 140 * GIB, "model": "H200"}
        ]
        known = {model["name"]: model for model in client.get("/api/v1/gpu-models/").json()}
        assert known["H200"]["memory_gib"] == 141
        assert known["K80"]["peak_tflops"] < known["H200"]["peak_tflops"]


class TestClusterPage:
    def told(self, gpus: dict[str, dict[str, Any]]) -> str:
        node = ready_node("alpha", *gpus)
        devices = [replace(gpu(uuid), **told) for uuid, told in gpus.items()]
        heartbeat.apply(node, beat(*devices), timezone.now() + timedelta(seconds=2))
        return text_of(client_of(make_viewer()), "/clusters/local/")

    def test_tells_how_each_gpu_stands(self) -> None:
        ready_node("alpha", "GPU-a", "GPU-b")
        lease("4141")
        held = Lease.objects.get().gpus[0]
        free = ({"GPU-a", "GPU-b"} - {held}).pop()
        page = self.told(
            {held: {"numbers": {"utilization_pct": 2.0}}, free: {"processes": (GpuProcess(7, "python"),)}}
        )
        assert "th-gpu-idle th-held" in page
        assert "held but idle" in page
        assert "th-gpu-foreign" in page
        assert "used by another process" in page

    def test_a_lost_gpu_is_neither_free_nor_at_work(self) -> None:
        page = self.told({"GPU-a": {}, "GPU-b": {"state": GPU_LOST, "error": "It has fallen off the bus."}})
        assert "th-gpu-lost" in page
        assert "no longer responds" in page
        assert "1<small> of 2" in page

    def test_of_a_gpu_whose_load_is_not_known_nobody_says_that_it_is_idle(self) -> None:
        ready_node("alpha", "GPU-a")
        lease("4141")
        assert "th-gpu-busy" in self.told({"GPU-a": {}})

    def test_one_that_the_workspace_may_not_use_is_not_there(self) -> None:
        closed = cluster("closed")
        closed.workspaces.add(make_workspace("other"))
        assert client_of(make_viewer()).get("/clusters/closed/").status_code == 404


class TestNodeApi:
    def test_tells_what_each_gpu_tells_and_nothing_for_what_it_does_not(self) -> None:
        node = ready_node("alpha", "GPU-a", "GPU-b")
        full = replace(gpu("GPU-a", utilization_pct=87.0, sm_clock_mhz=1980.0), counters={"ecc_corrected": 3})
        process = GpuProcess(7, "python", "root", memory_bytes=GIB, sm_pct=None)
        told = beat(
            replace(full, processes=(process,)), gpu("GPU-b"), numbers={"load_1": 1.5}, driver="570.1"
        )
        heartbeat.apply(node, told, timezone.now() + timedelta(seconds=2))
        (found,) = api_client(make_viewer()).get("/api/v1/nodes/").json()
        assert found["gpus"][0]["numbers"] == {"utilization_pct": 87.0, "sm_clock_mhz": 1980.0}
        assert found["gpus"][0]["counters"] == {"ecc_corrected": 3}
        assert (found["gpus"][1]["numbers"], found["gpus"][1]["utilization_pct"]) == ({}, None)
        assert (found["numbers"], found["driver"]) == ({"load_1": 1.5}, "570.1")
        (shown,) = found["processes"]
        assert (shown["gpu"], shown["pid"], shown["name"], shown["sm_pct"], shown["run"]) == (
            "GPU-a",
            7,
            "python",
            None,
            "",
        )
