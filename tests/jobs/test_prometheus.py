from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from clusters.models import Alert, Gpu, Hearing, Node
from clusters.node_reports import heartbeat
from tests.hub import PROJECT
from tests.jobs import builders
from tests.people import (
    api_client,
    make_contributor,
    make_operator,
    make_stranger,
    make_viewer,
    make_workspace,
    principal_of,
    token_of,
)
from trainhub_launch.machine import GPU_LOST
from workspaces.models import Membership
from workspaces.states import Role

pytestmark = pytest.mark.django_db
Sample = tuple[dict[str, str], float]
FIRST, SECOND = "GPU-alpha-0", "GPU-alpha-1"


def scraped(client: Client) -> dict[str, list[Sample]]:
    response = client.get(
        "/metrics", headers={"Accept": "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4"}
    )
    assert response.status_code == 200, response.content
    found: dict[str, list[Sample]] = {}
    for family in text_string_to_metric_families(response.content.decode()):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
    return found


def of(samples: list[Sample], **labels: str) -> list[float]:
    return [value for told, value in samples if labels.items() <= told.items()]


def node_with_numbers(name: str = "alpha") -> Node:
    """Two GPUs: the first tells everything, the second only its memory."""
    node = builders.node(name, gpus=2)
    beat = builders.beat(gpus=2, name=name)
    full = replace(
        beat.gpus[0],
        memory_bytes=80 * 2**30,
        numbers={
            "utilization_pct": 87.0,
            "memory_used_bytes": 70 * 2**30,
            "memory_reserved_bytes": 2**30,
            "sm_active_pct": 45.0,
            "power_w": 512.5,
            "throttled_thermal_pct": 100.0,
        },
        counters={"energy_mj": 123_456_789_012, "ecc_corrected": 3, "xid_last": 79},
    )
    told = replace(
        beat,
        gpus=(full, replace(beat.gpus[1], memory_bytes=2**30)),
        numbers={"cpu_pct": 12.5, "disk_read_bytes_s": 1e6},
        driver="570.1",
    )
    heartbeat.apply(node, told, timezone.now() + timedelta(seconds=2))
    return node


class TestGpus:
    def test_bear_the_names_units_and_labels_of_dcgms_exporter(self) -> None:
        node_with_numbers()
        found = scraped(api_client(make_viewer()))
        labels, value = found["DCGM_FI_DEV_GPU_UTIL"][0]
        assert value == 87.0
        assert labels["UUID"] == FIRST
        assert labels["gpu"] == "0"
        assert labels["device"] == "nvidia0"
        assert labels["instance"] == "alpha"
        assert labels["modelName"] == "H200"
        assert labels["DCGM_FI_DRIVER_VERSION"] == "570.1"
        assert labels["run"] == ""
        assert of(found["DCGM_FI_DEV_FB_USED"], UUID=FIRST) == [70 * 1024]
        assert of(found["DCGM_FI_DEV_FB_FREE"], UUID=FIRST) == [9 * 1024]
        assert of(found["DCGM_FI_PROF_SM_ACTIVE"], UUID=FIRST) == [0.45]
        assert of(found["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"], UUID=FIRST) == [123_456_789_012]
        assert of(found["DCGM_FI_DEV_XID_ERRORS"], UUID=FIRST) == [79]
        assert of(found["trainhub_gpu_throttled_thermal_pct"], UUID=FIRST) == [100.0]

    def test_what_a_device_does_not_tell_is_absent_and_never_zero(self) -> None:
        node_with_numbers()
        found = scraped(api_client(make_viewer()))
        for name in (
            "DCGM_FI_DEV_GPU_UTIL",
            "DCGM_FI_DEV_FB_USED",
            "DCGM_FI_DEV_FB_FREE",
            "DCGM_FI_DEV_XID_ERRORS",
        ):
            assert of(found[name], UUID=SECOND) == [], name
        assert of(found["DCGM_FI_DEV_FB_TOTAL"], UUID=SECOND) == [1024]

    def test_those_of_a_silent_node_tell_no_numbers(self) -> None:
        node = node_with_numbers()
        now = timezone.now()
        Hearing.objects.update_or_create(pk=1, defaults={"since": now - timedelta(hours=1), "until": now})
        Node.objects.filter(pk=node.pk).update(last_report_at=now - timedelta(minutes=2))
        found = scraped(api_client(make_viewer()))
        assert "DCGM_FI_DEV_GPU_UTIL" not in found
        assert of(found["trainhub_node_up"], instance="alpha") == [0.0]

    def test_one_that_fell_off_the_bus_is_not_healthy(self) -> None:
        node_with_numbers()
        Gpu.objects.filter(pk=SECOND).update(state=GPU_LOST)
        found = scraped(api_client(make_viewer()))
        assert of(found["trainhub_gpu_healthy"], UUID=FIRST) == [1.0]
        assert of(found["trainhub_gpu_healthy"], UUID=SECOND) == [0.0]


class TestHolders:
    def test_each_gpu_says_which_run_rank_and_person_it_works_for(self) -> None:
        node_with_numbers()
        who = principal_of(make_contributor())
        run = builders.launched(who, distribution=builders.processes(2), resources={"gpus_per_node": 2})
        found = scraped(api_client(make_viewer()))
        by_rank = {labels["rank"]: labels for labels, _ in found["trainhub_gpu_held"] if labels["run"]}
        assert by_rank.keys() == {"0", "1"}
        assert by_rank["1"]["run"] == str(run.number)
        assert by_rank["1"]["run_id"] == run.pk
        assert by_rank["1"]["user"] == "carl"
        assert by_rank["1"]["workspace"] == "Default"
        assert of(found["trainhub_gpu_held"], run=str(run.number)) == [1.0, 1.0]

    def test_another_workspace_learns_only_that_it_is_busy_and_an_operator_everything(self) -> None:
        node_with_numbers()
        builders.launched(
            principal_of(make_contributor()),
            distribution=builders.processes(2),
            resources={"gpus_per_node": 2},
        )
        stranger, other = make_stranger(), make_workspace("other")
        Membership.objects.create(user=stranger, workspace=other, role=Role.OWNER)
        found = scraped(Client(headers={"authorization": f"Bearer {token_of(stranger, other)}"}))
        assert {labels["run"] for labels, _ in found["trainhub_gpu_held"]} == {"busy"}
        assert "trainhub_runs" not in found
        operator = make_operator()
        assert {labels["run"] for labels, _ in scraped(api_client(operator))["trainhub_gpu_held"]} == {"1"}


class TestFleet:
    def test_tells_machines_runs_and_alerts(self) -> None:
        node = node_with_numbers()
        builders.queued(principal_of(make_contributor()))
        Alert.objects.create(key="a", kind="gpu_idle", node=node, severity="warning", state="firing")
        Alert.objects.create(key="b", kind="gpu_idle", node=node, severity="warning", state="cleared")
        found = scraped(api_client(make_viewer()))
        assert of(found["trainhub_node_up"], instance="alpha") == [1.0]
        assert of(found["trainhub_host_cpu_percent"], instance="alpha") == [12.5]
        assert of(found["trainhub_host_disk_read_bytes_per_second"], instance="alpha") == [1e6]
        assert of(found["trainhub_runs"], state="Queued", workspace="Default") == [1.0]
        assert of(found["trainhub_queue_oldest_seconds"], workspace="Default")[0] >= 0
        assert of(found["trainhub_alerts_firing"], kind="gpu_idle", severity="warning", instance="alpha") == [
            1.0
        ]


class TestDoor:
    def test_nobody_reads_it_without_a_token(self) -> None:
        assert Client().get("/metrics").status_code == 401

    def test_somebody_without_a_workspace_finds_nothing(self) -> None:
        assert api_client(make_operator()).get("/metrics").status_code == 200
        assert api_client(make_stranger()).get("/metrics").status_code in (401, 404)


class TestExamples:
    @pytest.mark.parametrize("document", ["dashboard.json", "alerts.yml"])
    def test_ask_only_for_what_there_is(self, document: str) -> None:
        node_with_numbers()
        response = api_client(make_viewer()).get("/metrics")
        there_is = set(re.findall(r"^# TYPE (\S+) ", response.content.decode(), re.MULTILINE))
        asked = re.findall(
            r"\b(?:DCGM_FI|trainhub)_\w+", (PROJECT / "docs" / "prometheus" / document).read_text()
        )
        assert asked
        assert set(asked) - there_is == set()
