from __future__ import annotations

import pytest

from tests.launch.builders import ALWAYS, CPU, SEVERAL_NODES, make_placement, make_plan, make_spec, mpi
from trainhub_launch.errors import SpecError
from trainhub_launch.plan import RANK_WRAPPER, RSH_AGENT
from trainhub_launch.scheduler.placement import PlacedNode, Placement
from trainhub_launch.spec import Variable

MASTER = {"MASTER_ADDR", "MASTER_PORT"}
AZURE = {"AZUREML_EXPERIMENT_ID", "AZ_BATCH_MASTER_NODE", "AZ_BATCHAI_MPI_MASTER_NODE", "NCCL_SOCKET_IFNAME"}
TORCH = {"RANK", "WORLD_SIZE", "LOCAL_RANK"}
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "OMPI_COMM_WORLD_NODE_RANK",
    "OMPI_UNIVERSE_SIZE",
    "PMIX_RANK",
}


class TestEnvironment:
    def test_on_one_node_is_exactly_the_contract(self) -> None:
        for process in make_plan(make_spec(mpi(2)), make_placement()).processes:
            assert set(process.env) == ALWAYS | CPU | MASTER | AZURE | TORCH
            assert set(process.provided) == OPEN_MPI

    def test_on_several_nodes_is_exactly_the_contract(self) -> None:
        for process in make_plan(make_spec(mpi(2, 2)), make_placement(2, 2)).processes:
            assert set(process.env) == ALWAYS | MASTER | AZURE | TORCH | SEVERAL_NODES | {
                "OMPI_MCA_btl_tcp_if_include"
            }
            assert set(process.provided) == OPEN_MPI

    def test_one_process_a_node_may_be_a_launcher_and_gets_no_local_rank(self) -> None:
        for process in make_plan(make_spec(mpi(1, 2)), make_placement(2, 4)).processes:
            assert not TORCH & set(process.env)

    def test_deepspeed_finds_the_head_and_its_port(self) -> None:
        env = make_plan(make_spec(mpi(2, 2), experiment="birds"), make_placement(2)).processes[3].env
        assert env["AZ_BATCH_MASTER_NODE"] == "10.0.0.1:6105"
        assert env["AZ_BATCHAI_MPI_MASTER_NODE"] == env["MASTER_ADDR"] == "10.0.0.1"
        assert env["AZUREML_EXPERIMENT_ID"] == "birds"

    def test_nccl_has_an_interface_even_where_none_is_known(self) -> None:
        nodes = tuple(PlacedNode(name=n, address=n, gpus=(), slots=8, cores=8) for n in ("a", "b"))
        made = make_plan(make_spec(mpi(1, 2)), Placement(nodes))
        assert all(process.env["NCCL_SOCKET_IFNAME"] for process in made.processes)
        assert not any(command.launcher_env for command in made.commands)

    def test_what_open_mpi_will_set_agrees_with_the_ranks(self) -> None:
        for process in make_plan(make_spec(mpi(2, 2)), make_placement(2)).processes:
            assert process.provided["OMPI_COMM_WORLD_RANK"] == str(process.rank) == process.env["RANK"]
            assert (
                process.provided["OMPI_COMM_WORLD_LOCAL_RANK"]
                == str(process.local_rank)
                == process.env["LOCAL_RANK"]
            )
            assert process.provided["OMPI_COMM_WORLD_SIZE"] == "4"

    @pytest.mark.parametrize("name", ["OMPI_COMM_WORLD_RANK", "AZ_BATCH_MASTER_NODE", "MASTER_ADDR"])
    def test_is_not_for_the_user_to_replace(self, name: str) -> None:
        with pytest.raises(SpecError, match=name):
            make_plan(make_spec(mpi(2), environment_variables={name: Variable(value="0")}), make_placement())


class TestMpirun:
    def test_on_one_node_needs_no_name_and_no_agent(self) -> None:
        (command,) = make_plan(make_spec(mpi(4)), make_placement()).commands
        assert command.launcher == (
            "mpirun",
            "--host",
            "127.0.0.1:4",
            "-np",
            "4",
            "--map-by",
            "slot",
            "--bind-to",
            "none",
            "--mca",
            "mpi_yield_when_idle",
            "1",
            RANK_WRAPPER,
        )

    def test_on_several_nodes_starts_their_daemons_by_our_agent(self) -> None:
        head, other = make_plan(make_spec(mpi(4, 2)), make_placement(2)).commands
        line = " ".join(head.launcher)
        assert "--host 10.0.0.1:4,10.0.0.2:4 -np 8" in line
        assert (
            f"--mca plm_rsh_agent {RSH_AGENT} --mca plm_rsh_no_tree_spawn 1 --leave-session-attached" in line
        )
        assert other.launcher == ()

    def test_and_its_daemons_talk_over_each_nodes_own_interface(self) -> None:
        other = PlacedNode(name="b", address="10.0.0.9", gpus=(), slots=8, cores=8, interface="ens5")
        made = make_plan(make_spec(mpi(1, 2)), Placement((make_placement().head, other)))
        assert [command.launcher_env for command in made.commands] == [
            {"OMPI_MCA_oob_tcp_if_include": name, "PRTE_MCA_oob_tcp_if_include": name}
            for name in ("eth0", "ens5")
        ]
        assert "if_include" not in " ".join(made.commands[0].launcher)
        assert [process.env["OMPI_MCA_btl_tcp_if_include"] for process in made.processes] == ["eth0", "ens5"]

    def test_holds_nothing_that_a_user_wrote(self) -> None:
        spec = make_spec(
            mpi(2), script="evil;.py", arguments=("--mca", "plm_rsh_agent", "evil", RANK_WRAPPER)
        )
        launcher = make_plan(spec, make_placement()).commands[0].launcher
        assert "evil" not in " ".join(launcher)
        assert launcher.count(RANK_WRAPPER) == 1


class TestRanks:
    def test_fill_one_node_after_the_other(self) -> None:
        made = make_plan(make_spec(mpi(2, 2)), make_placement(2, 2))
        assert [(p.rank, p.local_rank, p.node_rank, p.gpus) for p in made.processes] == [
            (0, 0, 0, ("GPU-1a",)),
            (1, 1, 0, ("GPU-1b",)),
            (2, 0, 1, ("GPU-2a",)),
            (3, 1, 1, ("GPU-2b",)),
        ]

    def test_a_single_one_has_the_plain_log_name(self) -> None:
        assert make_plan(make_spec(mpi()), make_placement()).processes[0].log_name == "70_driver_log.txt"
