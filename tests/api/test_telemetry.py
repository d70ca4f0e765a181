from __future__ import annotations

import csv
import io
import time
from typing import Any

import pytest
from django.test import Client

from clusters.models import Cluster, Gpu, Node
from clusters.telemetry import compaction
from tests.api.asking import refused
from tests.clusters.builders import ready_node
from tests.clusters.telemetry.builders import block, gpu_block, host_block, stored
from tests.people import api_client, client_of, make_stranger, make_viewer, make_workspace

NOW = int(time.time()) // 1800 * 1800
BEGUN = NOW - 7200
GPUS = ("GPU-a", "GPU-b")


@pytest.fixture
def box(db: None) -> Node:
    """Two hours of two GPUs, of which the second was silent for a while."""
    node = ready_node("alpha", *GPUS)
    both = [
        {
            uuid: {"utilization_pct": (40.0 + place, 90.0), "power_w": (300.5, 400)}
            for place, uuid in enumerate(GPUS)
        }
    ]
    stored(
        node,
        block(BEGUN, both * 180),
        host_block(BEGUN, [12.5] * 540),
        gpu_block(BEGUN + 1800, "GPU-a", [50.0] * 180),
        block(BEGUN + 3600, both * 180),
    )
    compaction.fold(node.pk, NOW - 1800)
    return node


@pytest.fixture
def api(viewer_api: Client) -> Client:
    return viewer_api


def asked(api: Client, path: str, **query: Any) -> Any:
    span = {"from": BEGUN, "to": BEGUN + 5400, "points": 3}
    return api.get(f"/api/v1/{path}", {**span, **query})


class TestNode:
    def test_tells_every_gpu_and_the_machine_on_one_grid(self, api: Client, box: Node) -> None:
        told = asked(api, "nodes/alpha/series/").json()
        assert (told["node"], told["from"], told["to"], told["step_s"]) == (
            "alpha",
            BEGUN,
            BEGUN + 5400,
            1800,
        )
        assert told["times"] == [BEGUN, BEGUN + 1800, BEGUN + 3600]
        assert told["host"] == {"cpu_pct": {"mean": [12.5] * 3, "max": [13.5] * 3}}
        first, second = told["gpus"]
        assert (first["uuid"], first["index"], first["name"]) == ("GPU-a", 0, "NVIDIA H200")
        assert first["series"]["utilization_pct"] == {"mean": [40, 50, 40], "max": [90, 51, 90]}
        assert first["series"]["power_w"]["mean"] == [300.5, None, 300.5]
        assert second["series"]["utilization_pct"] == {"mean": [41, None, 41], "max": [90, None, 90]}

    def test_what_is_not_known_of_any_gpu_is_absent(self, api: Client, box: Node) -> None:
        told = asked(api, "nodes/alpha/series/", metrics="all").json()
        assert [set(gpu["series"]) for gpu in told["gpus"]] == [{"utilization_pct", "power_w"}] * 2

    def test_tells_only_what_is_asked_for(self, api: Client, box: Node) -> None:
        told = asked(api, "nodes/alpha/series/", metrics="power_w", host="", gpus="GPU-b").json()
        assert told["host"] == {}
        assert [(gpu["uuid"], set(gpu["series"])) for gpu in told["gpus"]] == [("GPU-b", {"power_w"})]

    def test_the_last_hour_unless_a_span_is_named(self, api: Client, box: Node) -> None:
        told = api.get("/api/v1/nodes/alpha/series/").json()
        assert told["to"] - told["from"] in range(3600, 3660)
        assert len(told["times"]) <= 300

    @pytest.mark.parametrize("points", [1, 7, 300, 2000])
    def test_never_more_points_than_asked_for(self, api: Client, box: Node, points: int) -> None:
        told = asked(api, "nodes/alpha/series/", points=points, **{"from": BEGUN + 13}).json()
        assert 0 < len(told["times"]) <= points
        assert len(told["host"]["cpu_pct"]["mean"]) == len(told["times"])

    @pytest.mark.parametrize("path", ["nodes/alpha/series/", "gpus/GPU-a/series/", "clusters/local/heat/"])
    def test_all_of_time_costs_no_more_than_what_is_stored(self, api: Client, box: Node, path: str) -> None:
        told = asked(api, path, points=500, **{"from": 0, "to": 2**35}).json()
        assert len(told["times"]) <= 500

    def test_times_may_be_iso_8601(self, api: Client, box: Node) -> None:
        from_ = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(BEGUN))
        assert asked(api, "nodes/alpha/series/", **{"from": from_}).json()["from"] == BEGUN
        assert asked(api, "nodes/alpha/series/", **{"from": from_[:-1] + "+00:00"}).json()["from"] == BEGUN

    def test_as_csv_is_a_file_to_download(self, api: Client, box: Node) -> None:
        answer = asked(
            api, "nodes/alpha/series/", metrics="utilization_pct,power_w", host="cpu_pct", **{"as": "csv"}
        )
        assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
        assert answer.headers["Content-Disposition"] == 'attachment; filename="alpha-series.csv"'
        rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
        assert [(row["gpu"], row["host_cpu_pct_mean"]) for row in rows[::3]] == [
            ("", "12.5"),
            ("GPU-a", ""),
            ("GPU-b", ""),
        ]
        gap = rows[-2]
        assert gap["time"] == time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(BEGUN + 1800))
        assert (gap["node"], gap["index"], gap["gpu_utilization_pct_mean"], gap["gpu_power_w_max"]) == (
            "alpha",
            "1",
            "",
            "",
        )
        assert (rows[-1]["gpu_utilization_pct_mean"], rows[-1]["gpu_power_w_mean"]) == ("41.0", "300.5")


class TestGpu:
    def test_keeps_its_history_where_it_is_moved_to(self, api: Client, box: Node) -> None:
        other = ready_node("beta")
        Gpu.objects.filter(uuid="GPU-b").update(node=other)
        stored(other, gpu_block(BEGUN + 1800, "GPU-b", [70.0] * 90))
        told = asked(api, "gpus/GPU-b/series/").json()
        assert (told["node"], told["host"], [gpu["uuid"] for gpu in told["gpus"]]) == ("beta", {}, ["GPU-b"])
        assert told["gpus"][0]["series"]["utilization_pct"]["mean"] == [41, 70, 41]
        left = asked(api, "nodes/alpha/series/").json()["gpus"]
        assert [gpu["uuid"] for gpu in left] == ["GPU-a", "GPU-b"]

    def test_its_machine_is_told_where_asked_for(self, api: Client, box: Node) -> None:
        told = asked(api, "gpus/GPU-a/series/", host="cpu_pct").json()
        assert told["host"]["cpu_pct"]["mean"] == [12.5] * 3
        assert (
            asked(api, "gpus/GPU-a/series/", **{"as": "csv"})
            .headers["Content-Disposition"]
            .endswith('"GPU-a-series.csv"')
        )


class TestHeat:
    def test_has_a_row_for_every_gpu_also_where_nothing_is_known(self, api: Client, box: Node) -> None:
        ready_node("beta", "GPU-c")
        told = asked(api, "clusters/local/heat/").json()
        assert (told["metric"], told["step_s"], len(told["times"])) == ("utilization_pct", 1800, 3)
        assert [(row["node"], row["uuid"], row["index"], row["mean"]) for row in told["rows"]] == [
            ("alpha", "GPU-a", 0, [40, 50, 40]),
            ("alpha", "GPU-b", 1, [41, None, 41]),
            ("beta", "GPU-c", 0, [None] * 3),
        ]

    def test_shows_any_metric_and_as_csv(self, api: Client, box: Node) -> None:
        answer = asked(api, "clusters/local/heat/", metric="power_w", **{"as": "csv"})
        assert answer.headers["Content-Disposition"] == 'attachment; filename="local-power-w.csv"'
        rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
        assert [row["gpu_power_w_mean"] for row in rows] == ["300.5", "", "300.5"] * 2


class TestRefusals:
    @pytest.mark.parametrize(
        ("query", "field", "words"),
        [
            ({"from": "yesterday"}, "from", "Unix seconds or ISO 8601"),
            ({"from": "2026-13-45T00:00:00Z"}, "from", "such as 1795300000"),
            ({"to": "nan"}, "to", "Unix seconds"),
            ({"to": "1e99"}, "to", "Unix seconds"),
            ({"from": "-5"}, "from", "Unix seconds"),
            ({"from": BEGUN, "to": BEGUN}, "from", "before `to`"),
            ({"points": "0"}, "points", "from 1 to 2000"),
            ({"points": "2001"}, "points", "from 1 to 2000"),
            ({"points": "many"}, "points", "from 1 to 2000"),
            (
                {"metrics": "utilization_pct,heat"},
                "metrics",
                "has no 'heat'; it may be `all` or any of utilization_pct, ",
            ),
            ({"host": "fan_pct"}, "host", "any of cpu_pct, "),
            ({"gpus": "GPU-z"}, "gpus", "'GPU-z' is not a GPU of alpha, which has GPU-a, GPU-b"),
            ({"as": "xml"}, "as", "json or csv"),
            ({"form": "1"}, "form", "known parameters: as, from, gpus"),
        ],
    )
    def test_name_the_parameter_and_what_it_may_be(
        self, api: Client, box: Node, query: dict[str, str], field: str, words: str
    ) -> None:
        refused(asked(api, "nodes/alpha/series/", **query), 400, field, words)

    def test_a_heat_map_shows_one_metric(self, api: Client, box: Node) -> None:
        refused(asked(api, "clusters/local/heat/", metric="power_w,fan_pct"), 400, "metric", "must be one of")
        refused(asked(api, "clusters/local/heat/", points=501), 400, "points", "from 1 to 500")
        refused(
            asked(api, "clusters/local/heat/", metrics="power_w"),
            400,
            "metrics",
            "known parameters: as, from, metric",
        )

    @pytest.mark.parametrize("path", ["nodes/none/series/", "gpus/GPU-none/series/", "clusters/none/heat/"])
    def test_what_is_not_there_is_not_found(self, api: Client, box: Node, path: str) -> None:
        assert asked(api, path).status_code == 404


PATHS = ("nodes/alpha/series/", "gpus/GPU-a/series/", "clusters/local/heat/")


class TestRights:
    @pytest.mark.parametrize("path", [*PATHS, "metrics/"])
    def test_nothing_for_nobody_nor_for_a_stranger(self, box: Node, path: str) -> None:
        assert Client().get(f"/api/v1/{path}").status_code == 401
        assert client_of(make_stranger()).get(f"/api/v1/{path}").status_code == 404

    @pytest.mark.parametrize("path", PATHS)
    def test_a_cluster_of_other_workspaces_is_not_there(self, box: Node, path: str) -> None:
        Cluster.objects.get(name="local").workspaces.add(make_workspace("others"))
        assert asked(api_client(make_viewer()), path).status_code == 404

    def test_a_gpu_that_came_from_such_a_cluster_leaves_its_past_there(self, api: Client, box: Node) -> None:
        Cluster.objects.get(name="local").workspaces.add(make_workspace("others"))
        Gpu.objects.filter(uuid="GPU-b").update(node=ready_node("beta", cluster="open"))
        assert asked(api, "gpus/GPU-b/series/").json()["gpus"][0]["series"] == {}


def test_the_tables_of_metrics(api: Client) -> None:
    told = api.get("/api/v1/metrics/").json()
    assert told["gpu"][0] == {"key": "utilization_pct", "label": "Utilisation", "unit": "%"}
    assert {"key": "cpu_pct", "label": "CPU", "unit": "%"} in told["host"]
