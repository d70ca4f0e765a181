from __future__ import annotations

import json
from typing import Any

import pytest

from tests.launch.builders import ALWAYS, CPU, SEVERAL_NODES, make_placement, make_plan, make_spec, tensorflow
from trainhub_launch.errors import SpecError
from trainhub_launch.plan import LaunchPlan, PlannedProcess
from trainhub_launch.planner import plan
from trainhub_launch.scheduler.placement import PlacedNode, Placement
from trainhub_launch.spec import Resources, Variable


def config(process: PlannedProcess) -> dict[str, Any]:
    value = process.env["TF_CONFIG"]
    assert isinstance(value, str)
    loaded: dict[str, Any] = json.loads(value)
    return loaded


def make_dealt(workers: int, servers: int, nodes: int, gpus: int = 0) -> LaunchPlan:
    spec = make_spec(tensorflow(workers, servers), resources=Resources(node_count=nodes, gpus_per_node=gpus))
    return make_plan(spec, make_placement(nodes, gpus))


class TestEnvironment:
    def test_is_exactly_the_contract(self) -> None:
        for process in make_dealt(2, 0, 1).processes:
            assert set(process.env) == ALWAYS | CPU | {"TF_CONFIG"}
        for process in make_dealt(2, 0, 2, gpus=1).processes:
            assert set(process.env) == ALWAYS | SEVERAL_NODES | {"TF_CONFIG"}

    @pytest.mark.parametrize(("cores", "threads"), [(1, "4"), (32, "32")])
    def test_parameter_servers_get_a_thread_for_each_waiting_task(self, cores: int, threads: str) -> None:
        spec = make_spec(tensorflow(3, 1), resources=Resources(node_count=1))
        for process in make_plan(spec, make_placement(cores=cores)).processes:
            assert process.env["TF_NUM_INTEROP_THREADS"] == threads
        own = make_spec(
            tensorflow(3, 1),
            resources=Resources(node_count=1),
            environment_variables={"TF_NUM_INTEROP_THREADS": Variable(value="9")},
        )
        for process in make_plan(own, make_placement(cores=cores)).processes:
            assert process.env["TF_NUM_INTEROP_THREADS"] == "9"

    def test_keras_is_left_to_the_user(self) -> None:
        assert all("TF_USE_LEGACY_KERAS" not in process.env for process in make_dealt(2, 0, 2).processes)


class TestConfig:
    def test_is_the_guides_for_two_workers(self) -> None:
        first, second = make_dealt(2, 0, 2).processes
        assert config(first) == {
            "cluster": {"worker": ["10.0.0.1:6105", "10.0.0.2:6105"]},
            "task": {"type": "worker", "index": 0},
            "environment": "cloud",
        }
        assert config(second)["task"] == {"type": "worker", "index": 1}

    def test_never_holds_an_empty_list_of_servers_or_a_chief_without_servers(self) -> None:
        assert set(config(make_dealt(4, 0, 2).processes[0])["cluster"]) == {"worker"}

    def test_has_a_chief_where_there_are_servers(self) -> None:
        made = make_dealt(2, 1, 1)
        assert [(process.role, config(process)["task"]["index"]) for process in made.processes] == [
            ("chief", 0),
            ("worker", 0),
            ("worker", 1),
            ("ps", 0),
        ]
        assert set(config(made.processes[0])["cluster"]) == {"chief", "worker", "ps"}

    def test_is_the_same_cluster_for_all_and_no_endpoint_twice(self) -> None:
        made = make_dealt(5, 3, 2)
        clusters = [config(process)["cluster"] for process in made.processes]
        assert all(cluster == clusters[0] for cluster in clusters)
        endpoints = [endpoint for role in clusters[0].values() for endpoint in role]
        assert len(set(endpoints)) == len(endpoints) == 9

    def test_of_a_preview_says_that_ports_come_later(self) -> None:
        made = make_plan(make_spec(tensorflow(2)), make_placement(2), preview=True)
        assert config(made.processes[0])["cluster"]["worker"][1] == "10.0.0.2:<assigned at launch>"
        assert made.ports == {}


class TestPorts:
    def test_are_those_free_on_each_node(self) -> None:
        spec = make_spec(tensorflow(2, 2), resources=Resources(node_count=2))
        made = plan(spec, make_placement(2), {"gpu-1": [6106, 6200, 6300], "gpu-2": [6105, 6111]})
        assert made.ports == {"chief": 6106, "worker_0": 6200, "ps_0": 6300, "worker_1": 6105, "ps_1": 6111}

    def test_differ_between_agents_that_share_a_machine(self) -> None:
        nodes = tuple(PlacedNode(name=n, address="127.0.0.1", gpus=(), slots=8, cores=8) for n in ("a", "b"))
        made = plan(make_spec(tensorflow(2)), Placement(nodes), {"a": [6105, 6106], "b": [6105, 6106]})
        assert made.ports == {"worker_0": 6105, "worker_1": 6106}

    def test_too_few_of_them_is_an_error_that_names_the_node(self) -> None:
        with pytest.raises(SpecError, match="gpu-1"):
            plan(
                make_spec(tensorflow(2), resources=Resources(node_count=1)),
                make_placement(),
                {"gpu-1": [6105]},
            )


class TestSeats:
    def test_workers_sit_in_blocks_and_servers_in_turn(self) -> None:
        made = make_dealt(5, 3, 2)
        seats = {
            f"{process.role}{config(process)['task']['index']}": process.node_rank
            for process in made.processes
        }
        assert seats == {
            "chief0": 0,
            "worker0": 0,
            "worker1": 0,
            "worker2": 0,
            "worker3": 1,
            "worker4": 1,
            "ps0": 0,
            "ps1": 1,
            "ps2": 0,
        }

    def test_ranks_and_local_ranks_are_whole(self) -> None:
        made = make_dealt(5, 3, 2)
        assert sorted(process.rank for process in made.processes) == list(range(9))
        for command in made.commands:
            assert [process.local_rank for process in command.processes] == list(
                range(len(command.processes))
            )

    def test_logs_are_named_for_the_task(self) -> None:
        assert [process.log_name for process in make_dealt(1, 1, 1).processes] == [
            "70_driver_log_chief.txt",
            "70_driver_log_worker_0.txt",
            "70_driver_log_ps_0.txt",
        ]

    def test_a_node_without_a_worker_is_refused(self) -> None:
        with pytest.raises(SpecError, match="at most as many nodes as workers") as raised:
            make_dealt(2, 0, 3)
        assert raised.value.field == "resources.node_count"


class TestDecides:
    def test_every_worker_where_there_are_no_servers(self) -> None:
        assert all(process.decides for process in make_dealt(3, 0, 1).processes)

    def test_only_the_chief_where_there_are(self) -> None:
        assert [process.role for process in make_dealt(2, 2, 2).processes if process.decides] == ["chief"]


class TestGpus:
    def test_of_a_node_are_divided_between_its_workers(self) -> None:
        made = make_dealt(2, 0, 1, gpus=4)
        assert [process.gpus for process in made.processes] == [("GPU-1a", "GPU-1b"), ("GPU-1c", "GPU-1d")]
        assert [process.env["CUDA_VISIBLE_DEVICES"] for process in made.processes] == [
            "GPU-1a,GPU-1b",
            "GPU-1c,GPU-1d",
        ]

    def test_are_not_for_chief_and_servers(self) -> None:
        for process in make_dealt(1, 1, 1, gpus=2).processes:
            assert (
                bool(process.gpus) == (process.role == "worker") == ("ACCELERATE_USE_CPU" not in process.env)
            )

    def test_too_few_for_the_workers_are_seen_by_all(self) -> None:
        assert {process.gpus for process in make_dealt(3, 0, 1, gpus=2).processes} == {("GPU-1a", "GPU-1b")}
