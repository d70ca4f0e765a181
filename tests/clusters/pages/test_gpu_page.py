from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from clusters import journal
from clusters.enrolment.node_tokens import enrol_node
from clusters.leases import acquire, release
from clusters.models import Lease, Node
from clusters.node_reports import heartbeat
from tests.clusters.builders import GIB, beat, cluster, gpu, gpus_wanted, ready_node
from tests.clusters.pages.test_pages import text_of
from tests.clusters.telemetry.builders import gpu_block, stored
from tests.markup import one_line
from tests.people import client_of, make_stranger, make_viewer, make_workspace
from trainhub_launch.machine import GPU_LOST, GpuFact, NetworkPort
from trainhub_launch.telemetry import GpuProcess

pytestmark = pytest.mark.django_db


def report_gpus(*gpus: GpuFact, **changed: Any) -> Node:
    node, _ = enrol_node("local", "alpha")
    heartbeat.apply(node, beat(*gpus, **changed), timezone.now())
    return node


def hold(holder: str, slug: str = "default") -> None:
    with transaction.atomic():
        workspace = make_workspace(slug)
        acquire(
            cluster(),
            gpus_wanted(1),
            holder=holder,
            attempt=1,
            label=f"run {holder[:2]}",
            workspace=workspace,
        )


def page(address: str, **headers: str) -> str:
    return text_of(client_of(make_viewer()), address, **headers)


def script(text: str, name: str) -> Any:
    found = re.search(rf'<span id="{name}" hidden>(.*?)</span>', text, re.S)
    assert found
    return json.loads(html.unescape(found[1]))


def shape(config: Mapping[str, Any]) -> dict[str, str]:
    return {panel["label"]: panel["unit"] for group in config["groups"] for panel in group["panels"]}


class TestNodePage:
    def test_tells_the_charts_which_gpus_and_metrics_there_are(self) -> None:
        report_gpus(gpu("GPU-a"), gpu("GPU-b", 1))
        config = script(page("/nodes/alpha/"), "charts")
        assert [config["subjects"][uuid]["label"] for uuid in ("GPU-a", "GPU-b")] == ["GPU 0", "GPU 1"]
        assert shape(config)["Utilisation"] == "%"
        assert shape(config)["Network"] == "B/s"

    def test_a_machine_without_gpus_has_its_own_charts_alone(self) -> None:
        report_gpus()
        assert "Utilisation" not in shape(script(page("/nodes/alpha/"), "charts"))

    def test_a_lost_gpu_says_what_befell_it(self) -> None:
        report_gpus(replace(gpu("GPU-a"), state=GPU_LOST, error="It fell off the bus; reset the machine."))
        text = page("/nodes/alpha/")
        assert "It fell off the bus" in text
        assert "0 of 1 free" in text

    def test_mig_devices_stand_under_their_gpu(self) -> None:
        part = replace(gpu("MIG-1"), parent="GPU-a", profile="1g.10gb", memory_bytes=10 * GIB)
        report_gpus(replace(gpu("GPU-a"), mig=True), part)
        text = page("/nodes/alpha/")
        assert text.count('class="th-device-head"') == 1
        assert "1g.10gb" in text
        assert "1 of 1 free" in text, "the GPU itself is not offered"
        assert "1 of 1 GPU free" in page("/clusters/local/")

    def test_a_trouble_of_the_driver_is_told(self) -> None:
        report_gpus(nvml="The driver is not loaded; run modprobe nvidia.")
        assert "modprobe nvidia" in page("/nodes/alpha/")

    def test_drained_and_watched_nodes_are_marked(self) -> None:
        node = report_gpus()
        Node.objects.filter(pk=node.pk).update(drained_at=timezone.now(), monitor_only=True)
        text = page("/nodes/alpha/")
        assert "drained" in text
        assert "monitor only" in text

    def test_network_ports_are_listed(self) -> None:
        report_gpus(network_ports=(NetworkPort("mlx5_0", 1, "ACTIVE", "400 Gb/sec (4X NDR)", "InfiniBand"),))
        assert "400 Gb/sec (4X NDR)" in page("/nodes/alpha/")

    def test_a_refresh_brings_what_stands_below_the_charts_along(self) -> None:
        report_gpus(gpu("GPU-a"))
        part = page("/nodes/alpha/", HX_Request="true")
        assert 'id="node-rest" hx-swap-oob' in part
        assert 'data-mount="charts"' not in part


class TestProcesses:
    def test_are_listed_with_their_run_and_rank(self) -> None:
        process = GpuProcess(
            pid=4711,
            name="python train.py",
            user="ada",
            memory_bytes=3 * GIB,
            sm_pct=88.0,
            run="41" * 16,
            attempt=1,
            rank=2,
        )
        report_gpus(replace(gpu("GPU-a"), processes=(process,)))
        hold("41" * 16)
        text = page("/nodes/alpha/")
        for words in ("4711", "python train.py", "ada", "3.0 GiB", "88 %", "run 41", "rank 2"):
            assert words in text, words

    def test_that_outlive_the_lease_of_their_run_still_name_it(self) -> None:
        process = GpuProcess(pid=4711, name="python train.py", user="ada", run="41" * 16, attempt=1, rank=2)
        report_gpus(replace(gpu("GPU-a"), processes=(process,)))
        hold("41" * 16)
        release("41" * 16, 1)
        text = page("/nodes/alpha/")
        for words in ("python train.py", "ada", "run 41", "rank 2"):
            assert words in text, words

    def test_of_another_workspace_s_run_only_that_it_is_busy(self) -> None:
        process = GpuProcess(pid=4711, name="python secret.py", user="eve", run="42" * 16, attempt=1, rank=0)
        report_gpus(replace(gpu("GPU-a"), processes=(process,)))
        hold("42" * 16, slug="speech")
        for address in ("/nodes/alpha/", "/gpus/GPU-a/"):
            text = page(address)
            assert "4711" in text
            assert "busy" in text
            assert not {"secret.py", "eve", "run 42", "42" * 16} & set(re.findall(r"[\w. ]+", text))

    def test_what_a_device_cannot_tell_is_a_dash(self) -> None:
        report_gpus(replace(gpu("GPU-a"), processes=(GpuProcess(pid=4711, name="", user=""),)))
        row = re.search(r"4711.*?</tr>", page("/nodes/alpha/"), re.S)
        assert row
        assert row[0].count("–") == 4
        assert "0 B" not in row[0]


class TestGpuPage:
    def test_shows_what_it_is_and_how_it_does(self) -> None:
        counters = {
            "pcie_generation": 4,
            "pcie_width": 8,
            "pcie_generation_max": 5,
            "pcie_width_max": 16,
            "ecc_uncorrected": 3,
        }
        report_gpus(replace(gpu("GPU-a", power_w=512.0), counters=counters), driver="580.65", cuda="13.0")
        text = page("/gpus/GPU-a/")
        for words in (
            "NVIDIA H200",
            "alpha",
            "580.65",
            "PCIe 4 ×8 of 5 ×16",
            "ECC errors not corrected",
            "512 W",
        ):
            assert words in text, words
        assert re.search(r'th-grave">.*?3\s*</dd>', text, re.S)
        assert "Pages retired" not in text, "what it does not tell is not 0"

    def test_a_refresh_gets_what_changes_without_the_charts(self) -> None:
        report_gpus(gpu("GPU-a", power_w=512.0))
        part = page("/gpus/GPU-a/", HX_Request="true")
        assert "512 W" in part
        assert "<html" not in part
        assert 'data-mount="charts"' not in part

    def test_its_troubles_are_on_record(self) -> None:
        node = report_gpus(gpu("GPU-a"))
        journal.add_once(
            node,
            "xid",
            "XID 79: the GPU has fallen off the bus.",
            timezone.now(),
            key="k",
            gpu="GPU-a",
            code=79,
        )
        assert "XID 79" in page("/gpus/GPU-a/")

    @pytest.mark.parametrize("address", ["/gpus/GPU-a/", "/gpus/GPU-a/history/"])
    def test_of_another_workspace_s_cluster_it_is_not_there(self, address: str) -> None:
        ready_node("beta", "GPU-a", cluster="private")
        cluster("private").workspaces.add(make_workspace("speech"))
        assert client_of(make_viewer()).get(address).status_code == 404
        assert client_of(make_stranger()).get(address).status_code == 404

    def test_a_mig_device_of_an_old_driver_has_slashes_in_its_name(self) -> None:
        report_gpus(
            replace(gpu("MIG-GPU-a/1/0"), parent="GPU-a", profile="1g.10gb"), replace(gpu("GPU-a"), mig=True)
        )
        assert "a part of" in page("/gpus/MIG-GPU-a/1/0/")
        assert "No run used it" in page("/gpus/MIG-GPU-a/1/0/history/")
        curves = client_of(make_viewer()).get("/api/v1/gpus/MIG-GPU-a/1/0/series/")
        assert curves.json()["gpus"][0]["uuid"] == "MIG-GPU-a/1/0"

    @pytest.mark.parametrize("span", ["from=0&to=1e12", "from=1e12&to=1e13", "from=0&to=253402300799"])
    def test_a_time_after_the_last_year_leaves_the_default_range(self, span: str) -> None:
        report_gpus(gpu("GPU-a"))
        assert page(f"/gpus/GPU-a/history/?{span}") == page("/gpus/GPU-a/history/")


class TestHistory:
    def used(self, holder: str, began_h: float, ended_h: float | None, slug: str = "default") -> None:
        """By a run that held it from so many hours ago on."""
        now = timezone.now()
        hold(holder, slug)
        if ended_h is not None:
            release(holder, 1)
        ended = None if ended_h is None else now - timedelta(hours=ended_h)
        Lease.objects.filter(holder=holder).update(
            created_at=now - timedelta(hours=began_h), released_at=ended
        )

    def test_lists_the_runs_that_held_it_with_their_hours(self) -> None:
        ready_node("alpha", "GPU-a")
        self.used("41" * 16, 3, 2)
        self.used("42" * 16, 0.5, None)
        text = page("/gpus/GPU-a/history/?range=6h")
        assert "in use for 1.5 of 6.0 GPU hours" in text
        assert "in use</td>" in text
        assert text.index("run 42") < text.index("run 41")

    def test_only_the_span_that_is_shown_counts(self) -> None:
        ready_node("alpha", "GPU-a")
        self.used("41" * 16, 3, 0.5)
        text = one_line(page("/gpus/GPU-a/history/?range=1h"))
        assert "in use for 0.5 of 1.0 GPU hours, 50 %" in text

    def test_only_the_runs_between_two_moments_are_shown(self) -> None:
        ready_node("alpha", "GPU-a")
        self.used("41" * 16, 3, 2)
        self.used("42" * 16, 1, 0.5)
        now = timezone.now().timestamp()
        text = one_line(page(f"/gpus/GPU-a/history/?from={now - 4 * 3600}&to={now - 1.5 * 3600}"))
        assert "in use for 1.0 of 2.5 GPU hours" in text
        assert "run 41" in text
        assert "run 42" not in text

    def test_the_load_of_a_run_is_the_mean_of_its_own_time(self) -> None:
        node = ready_node("alpha", "GPU-a")
        self.used("41" * 16, 0.9, 0.5)
        self.used("42" * 16, 0.4, 0.1)
        start = int(timezone.now().timestamp()) // 10 * 10 - 3600
        loads = (40.0 if second < 1980 else 80.0 for second in range(0, 3600, 10))
        stored(node, gpu_block(start, "GPU-a", list(loads)))
        second, first = re.findall(r'<td class="th-num">(\d+ %)</td>', page("/gpus/GPU-a/history/"))
        assert (first, second) == ("40 %", "80 %")

    def test_nothing_is_claimed_of_a_load_that_nobody_measured(self) -> None:
        ready_node("alpha", "GPU-a")
        self.used("41" * 16, 0.9, 0.2)
        assert '<td class="th-num">–</td>' in page("/gpus/GPU-a/history/")

    def test_bands_name_our_runs_and_only_busy_for_others(self) -> None:
        ready_node("alpha", "GPU-a")
        self.used("41" * 16, 0.9, 0.6)
        self.used("42" * 16, 0.5, 0.1, slug="speech")
        strange, ours = script(page("/gpus/GPU-a/"), "bands-now")
        assert (ours["label"], "41" * 16 in ours["url"]) == ("run 41", True)
        assert (strange["label"], strange["url"]) == ("busy", "")
        assert 1000 < ours["to"] - ours["from"] < 1200

    @pytest.mark.parametrize(
        "query", ["?range=constructor", "?from=x&to=y", "?from=9&to=1", "?from=1e400&to=nan"]
    )
    def test_an_address_that_means_nothing_shows_the_usual_span(self, query: str) -> None:
        ready_node("alpha", "GPU-a")
        assert "No run used it" in page(f"/gpus/GPU-a/history/{query}")
