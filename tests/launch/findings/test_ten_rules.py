"""What each framework must be told or spared so that it trains at all: one class for each trap that was
found.

Here stands what a plan and its review say; what needs living processes is in
tests/node/supervisor/test_frameworks.py."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.launch.builders import environment, make_placement, make_plan, make_spec, mpi, pytorch, tensorflow
from tests.launch.findings.findings_of import command, found, one, script
from trainhub_launch.distribution import Distribution
from trainhub_launch.plan import PlannedProcess
from trainhub_launch.spec import EnvironmentRef, Resources, Variable

ELASTIC = "torchrun --nnodes 2 --nproc_per_node 2 --max-restarts 3"
C10D = f"{ELASTIC} --rdzv-backend c10d --rdzv-endpoint $MASTER_ADDR:$MASTER_PORT train.py"
SEVERAL: list[Distribution] = [pytorch(4, 2), pytorch(None, 2), mpi(2, 2), mpi(1, 2), tensorflow(2)]


def tf_config(process: PlannedProcess) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(environment(process)["TF_CONFIG"])
    return loaded


class TestRule1GlooTakesTheInterfaceOfItsNode:
    @pytest.mark.parametrize("distribution", SEVERAL)
    def test_is_named_to_every_process_of_several_nodes(self, distribution: Distribution | None) -> None:
        for process in make_plan(make_spec(distribution), make_placement(2)).processes:
            assert process.env["GLOO_SOCKET_IFNAME"] == "eth0"


class TestRule2OneThatDecidesEndsAll:
    def test_the_chief_decides_over_workers_and_parameter_servers_that_never_end(self) -> None:
        plan = make_plan(make_spec(tensorflow(2, 1), resources=Resources(node_count=1)), make_placement())
        assert {process.role for process in plan.processes if process.decides} == {"chief"}

    @pytest.mark.parametrize("distribution", SEVERAL)
    def test_where_all_train_alike_each_decides(self, distribution: Distribution | None) -> None:
        assert all(
            process.decides for process in make_plan(make_spec(distribution), make_placement(2)).processes
        )


class TestRule5LocalRankOnlyPerProcess:
    def test_a_launcher_of_one_node_finds_none(self) -> None:
        for process in make_plan(make_spec(pytorch(None, 2)), make_placement(2)).processes:
            assert not {"LOCAL_RANK", "LOCAL_WORLD_SIZE"} & process.env.keys()
            assert {"MASTER_ADDR", "MASTER_PORT", "NODE_RANK"} <= process.env.keys()

    def test_nor_does_one_that_mpi_starts(self) -> None:
        for process in make_plan(make_spec(mpi(1, 2)), make_placement(2)).processes:
            assert not {"RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE"} & process.env.keys()

    def test_each_process_that_trainhub_starts_has_its_own(self) -> None:
        plan = make_plan(make_spec(pytorch(4, 2)), make_placement(2))
        assert [process.env["LOCAL_RANK"] for process in plan.processes] == ["0", "1", "0", "1"]


class TestRule6AcceleratorsAreNotMissedOnCpus:
    @pytest.mark.parametrize("distribution", [None, pytorch(2), pytorch(None), mpi(2), tensorflow(1)])
    def test_accelerate_is_told_to_use_the_cpu(self, distribution: Distribution | None) -> None:
        for process in make_plan(make_spec(distribution), make_placement()).processes:
            assert process.env["ACCELERATE_USE_CPU"] == "true"

    def test_but_not_beside_gpus(self) -> None:
        assert (
            "ACCELERATE_USE_CPU"
            not in make_plan(make_spec(pytorch(2)), make_placement(gpus=2)).processes[0].env
        )

    def test_its_own_launcher_starts_one_process_there(self) -> None:
        answer = one(command("accelerate launch --num_processes 2 train.py"), "command")
        assert (answer.level, "torchrun --nproc_per_node 2" in answer.message) == ("warning", True)
        assert found(command("accelerate launch --num_processes 1 train.py")) == []


class TestRule7TensorFlowsTraps:
    def test_no_empty_list_of_parameter_servers(self) -> None:
        for process in make_plan(make_spec(tensorflow(2)), make_placement(2)).processes:
            assert set(tf_config(process)["cluster"]) == {"worker"}

    def test_parameter_servers_come_with_a_chief(self) -> None:
        plan = make_plan(make_spec(tensorflow(2, 1), resources=Resources(node_count=1)), make_placement())
        for process in plan.processes:
            cluster = tf_config(process)["cluster"]
            assert {role: len(hosts) for role, hosts in cluster.items()} == {"chief": 1, "worker": 2, "ps": 1}

    def test_legacy_keras_is_hinted_at_where_fit_would_fail(self) -> None:
        assert "TF_USE_LEGACY_KERAS=1" in one(make_spec(tensorflow(2)), "environment_variables").message
        told = {"TF_USE_LEGACY_KERAS": Variable(value="1")}
        assert found(make_spec(tensorflow(2), environment_variables=told)) == []
        assert found(make_spec(tensorflow(2, 1), resources=Resources(node_count=1))) == []


class TestRule8WhatCountsHostNamesIsToldItsLocalRank:
    def test_deepspeed_finds_all_that_it_would_otherwise_count(self) -> None:
        for process in make_plan(make_spec(mpi(2, 2)), make_placement(2)).processes:
            assert {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"} <= process.env.keys()

    @pytest.mark.parametrize("per_node", [1, 2])
    def test_and_the_variables_of_azure_exist_together(self, per_node: int) -> None:
        for process in make_plan(make_spec(mpi(per_node, 2)), make_placement(2)).processes:
            env = environment(process)
            assert env["AZ_BATCH_MASTER_NODE"] == f"{env['MASTER_ADDR']}:{env['MASTER_PORT']}"
            assert env["AZ_BATCHAI_MPI_MASTER_NODE"] == env["MASTER_ADDR"]
            assert env["AZUREML_EXPERIMENT_ID"]
            assert env["NCCL_SOCKET_IFNAME"]


class TestRule9ProcessesShareTheCores:
    @pytest.mark.parametrize(
        ("distribution", "threads"),
        [(None, "8"), (pytorch(4), "2"), (mpi(2), "4"), (tensorflow(1), "8"), (pytorch(16), "1")],
    )
    def test_each_gets_its_share_and_at_least_one(
        self, distribution: Distribution | None, threads: str
    ) -> None:
        plan = make_plan(make_spec(distribution), make_placement(cores=8))
        assert {process.env["OMP_NUM_THREADS"] for process in plan.processes} == {threads}


class TestRule10ElasticRestarts:
    def test_each_node_knows_whether_it_hosts_and_where_it_is(self) -> None:
        spec = command(C10D, pytorch(None, 2, "gloo"))
        first, second = (environment(process) for process in make_plan(spec, make_placement(2)).processes)
        assert (
            first["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] == second["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] == "1"
        )
        assert (first["PET_RDZV_CONF"], second["PET_RDZV_CONF"]) == ("is_host=1", "is_host=0")
        assert (first["PET_LOCAL_ADDR"], second["PET_LOCAL_ADDR"]) == ("10.0.0.1", "10.0.0.2")
        assert found(spec) == []

    def test_on_one_node_need_only_a_store_of_their_own(self) -> None:
        for distribution in (None, pytorch()):
            spec = command("torchrun --standalone --nproc_per_node 2 --max_restarts=3 train.py", distribution)
            env = make_plan(spec, make_placement()).processes[0].env
            assert env["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] == "1"
            assert not {"PET_RDZV_CONF", "PET_LOCAL_ADDR"} & env.keys()

    def test_the_static_way_is_advised_against_with_the_one_that_works(self) -> None:
        line = (
            f"{ELASTIC} --node_rank $NODE_RANK --master_addr $MASTER_ADDR --master_port $MASTER_PORT train.py"
        )
        answer = one(command(line, pytorch(None, 2, "gloo")), "command")
        assert answer.level == "warning"
        assert (
            "--rdzv-backend c10d --rdzv-endpoint $MASTER_ADDR:$MASTER_PORT instead of --node-rank"
            in answer.message
        )
        assert "limits.retries 3" in answer.message
        assert (
            "use --standalone"
            in one(command("torchrun --nproc_per_node 2 --max-restarts 1 train.py"), "command").message
        )

    def test_the_users_own_rendezvous_settings_replace_ours_and_say_so(self) -> None:
        own = C10D.replace("train.py", "--rdzv-conf read_timeout=90 train.py")
        assert "PET_RDZV_CONF" in one(command(own, pytorch(None, 2, "gloo")), "command").message

    def test_without_restarts_nothing_is_set(self) -> None:
        spec = command("torchrun --nproc_per_node 2 --max-restarts 0 train.py", pytorch())
        assert "TORCH_DISABLE_SHARE_RDZV_TCP_STORE" not in make_plan(spec, make_placement()).processes[0].env

    def test_the_user_may_tune_them(self) -> None:
        spec = make_spec(
            pytorch(None, 2),
            command=tuple(C10D.split()),
            environment_variables={"PET_RDZV_CONF": Variable(value="is_host=1")},
        )
        assert environment(make_plan(spec, make_placement(2)).processes[1])["PET_RDZV_CONF"] == "is_host=1"


class TestHorovod:
    @pytest.mark.parametrize("distribution", [None, pytorch(2, backend="gloo")])
    def test_without_mpi_each_process_would_train_alone(self, distribution: Distribution | None) -> None:
        spec = make_spec(distribution, environment=EnvironmentRef("TrainHub-Horovod-0.28"))
        assert "choose the MPI distribution" in one(spec, "distribution").message

    def test_with_mpi_is_as_it_should_be(self) -> None:
        assert found(make_spec(mpi(2), environment=EnvironmentRef("TrainHub-Horovod-0.28"))) == []


def test_head_launchers_that_users_must_not_give_are_named_with_what_to_do() -> None:
    for line in (
        "deepspeed train.py",
        "horovodrun -np 2 python train.py",
        "mpirun.openmpi -np 2 python train.py",
    ):
        answer = one(command(line), "command")
        assert (answer.level, "choose the MPI distribution" in answer.message) == ("error", True)
    assert found(script("", mpi(2))) == []
