"""Azure's names for the run, the rank and the head, in runs that ask for them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.launch.builders import make_placement, make_plan, make_spec, mpi, pytorch, tensorflow
from trainhub_launch.distribution import Distribution
from trainhub_launch.plan import Reference
from trainhub_launch.processes.azureml import WORKSPACE
from trainhub_launch.spec import Variable

NAMES = ("AZ_BATCHAI_TASK_INDEX", "AZ_BATCHAI_MPI_MASTER_NODE", "AZ_BATCH_MASTER_NODE")
MASTER = ("10.0.0.1", "10.0.0.1:6105")


def environments(distribution: Distribution | None, nodes: int, *, asks: bool = True) -> list[Any]:
    variables = {WORKSPACE: Variable(value="team")} if asks else {}
    spec = make_spec(distribution, environment_variables=variables)
    return [process.env for process in make_plan(spec, make_placement(nodes)).processes]


@pytest.mark.parametrize("distribution", [pytorch(4, 2), mpi(2, 2)])
def test_each_rank_has_its_own_and_the_head(distribution: Distribution) -> None:
    variables = environments(distribution, 2)
    assert [tuple(env[name] for name in NAMES) for env in variables] == [(str(r), *MASTER) for r in range(4)]
    assert {env["AZUREML_RUN_ID"] for env in variables} == {Reference("launch", "run_id")}


def test_a_launcher_of_the_user_has_that_of_its_node() -> None:
    assert [env[NAMES[0]] for env in environments(pytorch(None, 2), 2)] == ["0", "1"]


@pytest.mark.parametrize(
    ("distribution", "nodes", "head"), [(None, 1, "127.0.0.1"), (tensorflow(2), 2, "10.0.0.1")]
)
def test_without_a_port_there_is_only_the_address(
    distribution: Distribution | None, nodes: int, head: str
) -> None:
    for rank, env in enumerate(environments(distribution, nodes)):
        assert (env[NAMES[0]], env[NAMES[1]], NAMES[2] in env) == (str(rank), head, False)


def test_a_run_that_does_not_ask_has_none_of_them() -> None:
    (env,) = environments(None, 1, asks=False)
    assert not [name for name in env if name.startswith("AZ")]


def test_arguments_may_name_them() -> None:
    spec = make_spec(
        pytorch(2),
        arguments=("$AZ_BATCHAI_TASK_INDEX",),
        environment_variables={WORKSPACE: Variable(value="team")},
    )
    assert all("AZ_BATCHAI_TASK_INDEX" in item.env for item in make_plan(spec, make_placement()).processes)
