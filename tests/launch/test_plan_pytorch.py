from __future__ import annotations

import pytest

from tests.launch.builders import (
    ALWAYS,
    CPU,
    SEVERAL_NODES,
    environment,
    make_placement,
    make_plan,
    make_spec,
    pytorch,
)
from trainhub_launch.errors import SpecError
from trainhub_launch.plan import Reference
from trainhub_launch.planner import plan
from trainhub_launch.scheduler.placement import PlacedNode, Placement
from trainhub_launch.spec import Variable
from trainhub_launch.spec_reader import read_spec

RENDEZVOUS = {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "NODE_RANK", "RANK"}
PER_PROCESS = RENDEZVOUS | {"LOCAL_RANK", "LOCAL_WORLD_SIZE"}


class TestPerProcess:
    def test_on_one_node_gets_exactly_the_contract(self) -> None:
        for process in make_plan(make_spec(pytorch(2)), make_placement()).processes:
            assert set(process.env) == ALWAYS | CPU | PER_PROCESS

    def test_on_several_nodes_gets_exactly_the_contract(self) -> None:
        for process in make_plan(make_spec(pytorch(4, 2)), make_placement(2, 2)).processes:
            assert set(process.env) == ALWAYS | PER_PROCESS | SEVERAL_NODES

    def test_ranks_count_through_the_nodes(self) -> None:
        plan = make_plan(make_spec(pytorch(4, 2)), make_placement(2))
        names = ("RANK", "LOCAL_RANK", "NODE_RANK", "LOCAL_WORLD_SIZE", "WORLD_SIZE")
        assert [tuple(process.env[name] for name in names) for process in plan.processes] == [
            ("0", "0", "0", "2", "4"),
            ("1", "1", "0", "2", "4"),
            ("2", "0", "1", "2", "4"),
            ("3", "1", "1", "2", "4"),
        ]
        assert [(p.rank, p.local_rank, p.node_rank) for p in plan.processes] == [
            (0, 0, 0),
            (1, 1, 0),
            (2, 0, 1),
            (3, 1, 1),
        ]
        assert [p.log_name for p in plan.processes] == [f"70_driver_log_{rank}.txt" for rank in range(4)]

    def test_each_has_its_own_gpu_and_sees_all_so_that_cuda_local_rank_exists(self) -> None:
        plan = make_plan(make_spec(pytorch(2)), make_placement(gpus=2))
        assert [process.gpus for process in plan.processes] == [("GPU-1a",), ("GPU-1b",)]
        for process in plan.processes:
            seen = environment(process)["CUDA_VISIBLE_DEVICES"].split(",")
            assert (seen[int(environment(process)["LOCAL_RANK"])],) == process.gpus

    def test_with_more_gpus_than_processes_all_are_for_each(self) -> None:
        plan = make_plan(make_spec(pytorch(2)), make_placement(gpus=4))
        assert {process.gpus for process in plan.processes} == {("GPU-1a", "GPU-1b", "GPU-1c", "GPU-1d")}

    def test_cores_are_shared_by_the_processes_of_a_node(self) -> None:
        plan = make_plan(make_spec(pytorch(6, 2)), make_placement(2, cores=8))
        assert {environment(process)["OMP_NUM_THREADS"] for process in plan.processes} == {"2"}
        crowded = make_plan(make_spec(pytorch(4)), make_placement(cores=2))
        assert {environment(process)["OMP_NUM_THREADS"] for process in crowded.processes} == {"1"}

    def test_a_count_that_does_not_divide_is_refused_with_two_that_do(self) -> None:
        with pytest.raises(SpecError, match="use 4 or 6") as raised:
            make_plan(make_spec(pytorch(5, 2)), make_placement(2))
        assert raised.value.field == "distribution.process_count"

    def test_fewer_processes_than_nodes_are_refused(self) -> None:
        with pytest.raises(SpecError, match="use 4, or change node_count"):
            make_plan(make_spec(pytorch(2, 4)), make_placement(4))


class TestPerNode:
    def test_never_sets_a_local_rank(self) -> None:
        for process in make_plan(make_spec(pytorch(None, 2)), make_placement(2, 4)).processes:
            assert set(process.env) == ALWAYS | RENDEZVOUS | SEVERAL_NODES
            assert not {"LOCAL_RANK", "LOCAL_WORLD_SIZE"} & set(process.env)

    def test_counts_nodes(self) -> None:
        plan = make_plan(make_spec(pytorch(None, 2)), make_placement(2, 4))
        assert [(p.env["NODE_RANK"], p.env["RANK"], p.env["WORLD_SIZE"]) for p in plan.processes] == [
            ("0", "0", "2"),
            ("1", "1", "2"),
        ]
        assert plan.processes[1].gpus == ("GPU-2a", "GPU-2b", "GPU-2c", "GPU-2d")

    @pytest.mark.parametrize(
        "command",
        [
            ("torchrun", "--nproc_per_node", "4", "train.py"),
            ("torchrun", "--nproc-per-node=4", "train.py"),
            (
                "python",
                "-u",
                "-m",
                "torch.distributed.launch",
                "--use_env",
                "--nproc_per_node",
                "4",
                "train.py",
            ),
            ("accelerate", "launch", "--multi_gpu", "--num_processes", "4", "train.py"),
            ("torchrun", "--nproc_per_node", "gpu", "train.py"),
        ],
    )
    def test_threads_are_for_the_processes_that_its_launcher_starts(self, command: tuple[str, ...]) -> None:
        spec = make_spec(pytorch(None), command=command)
        spec = read_spec({**spec.to_json(), "resources": {"gpus_per_node": 4}})
        assert environment(make_plan(spec, make_placement(gpus=4)).processes[0])["OMP_NUM_THREADS"] == "4"


class TestRendezvous:
    def test_one_node_needs_no_network(self) -> None:
        assert (
            make_plan(make_spec(pytorch(2)), make_placement()).processes[0].env["MASTER_ADDR"] == "127.0.0.1"
        )

    def test_several_meet_at_the_heads_address(self) -> None:
        plan = make_plan(make_spec(pytorch(2, 2)), make_placement(2))
        assert {process.env["MASTER_ADDR"] for process in plan.processes} == {"10.0.0.1"}

    def test_the_port_is_6105(self) -> None:
        plan = make_plan(make_spec(pytorch(2)), make_placement())
        assert plan.ports == {"MASTER_PORT": 6105}
        assert plan.processes[0].env["MASTER_PORT"] == "6105"

    def test_the_next_free_port_of_the_head_is_taken_where_6105_is_not_free(self) -> None:
        made = plan(make_spec(pytorch(2, 2)), make_placement(2), {"gpu-1": [6107, 6109], "gpu-2": [6105]})
        assert {process.env["MASTER_PORT"] for process in made.processes} == {"6107"}

    def test_a_head_without_a_free_port_is_an_error_that_names_it(self) -> None:
        with pytest.raises(SpecError, match="gpu-1, the head of the run, has no free port"):
            plan(make_spec(pytorch(2)), make_placement(), {"gpu-1": []})

    def test_a_preview_leaves_the_port_to_the_launch(self) -> None:
        made = make_plan(make_spec(pytorch(2)), make_placement(), preview=True)
        assert made.processes[0].env["MASTER_PORT"] == Reference("launch", "port")
        assert made.ports == {}


class TestNetwork:
    def test_each_node_names_its_own_interface(self) -> None:
        nodes = make_placement(2).nodes
        other = PlacedNode(name="b", address="10.0.0.9", gpus=(), slots=8, cores=8, interface="ens5")
        made = make_plan(make_spec(pytorch(2, 2)), Placement((nodes[0], other)))
        assert [process.env["GLOO_SOCKET_IFNAME"] for process in made.processes] == ["eth0", "ens5"]

    def test_infiniband_is_switched_off_knowingly_where_one_node_has_none(self) -> None:
        having = make_placement(2, 1, infiniband=True).nodes[0]
        made = make_plan(make_spec(pytorch(2, 2)), Placement((having, make_placement(2, 1).nodes[1])))
        assert {process.env["NCCL_IB_DISABLE"] for process in made.processes} == {"1"}
        assert made.notes == ("InfiniBand is switched off (NCCL_IB_DISABLE=1): no active port on gpu-2.",)

    def test_infiniband_is_used_where_all_have_it(self) -> None:
        made = make_plan(make_spec(pytorch(2, 2)), make_placement(2, 1, infiniband=True))
        assert all("NCCL_IB_DISABLE" not in process.env for process in made.processes)

    def test_an_unknown_interface_is_not_made_up(self) -> None:
        nodes = tuple(
            PlacedNode(name=n, address=n, gpus=(), slots=8, cores=8, infiniband=True) for n in ("a", "b")
        )
        made = make_plan(make_spec(pytorch(2, 2)), Placement(nodes))
        assert not {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"} & set(made.processes[0].env)
        assert any("TRAINHUB_NODE_INTERFACE" in note for note in made.notes)


@pytest.mark.parametrize("name", sorted(PER_PROCESS))
def test_a_user_variable_never_replaces_what_pytorch_is_told(name: str) -> None:
    with pytest.raises(SpecError, match=name):
        make_plan(make_spec(pytorch(2), environment_variables={name: Variable(value="0")}), make_placement())
