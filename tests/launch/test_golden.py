"""What will run, printed: one file for each way to start a run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.launch.builders import make_placement, make_plan, make_spec, mpi, pytorch, tensorflow
from tests.launch.conftest import GOLDEN
from trainhub_launch.plan import LaunchPlan
from trainhub_launch.printing import show
from trainhub_launch.spec import Resources, Variable

EPOCHS = ("--epochs", "50")
TORCH_LAUNCH = (
    "python",
    "-m",
    "torch.distributed.launch",
    "--nproc_per_node",
    "4",
    "--nnodes",
    "2",
    "--node_rank",
    "$NODE_RANK",
    "--master_addr",
    "$MASTER_ADDR",
    "--master_port",
    "$MASTER_PORT",
    "--use_env",
    "train.py",
    *EPOCHS,
)
ELASTIC = (
    "torchrun",
    "--nnodes",
    "2",
    "--nproc_per_node",
    "2",
    "--max-restarts",
    "3",
    "--rdzv-backend",
    "c10d",
    "--rdzv-endpoint",
    "$MASTER_ADDR:$MASTER_PORT",
    "train.py",
)
HOSTILE = (
    "a b",
    "x;rm -rf /",
    "it's",
    'say "hi"',
    "$(id)",
    "`id`",
    "${HOME",
    "$$HOME",
    "naïve ☃",
    "",
    "*",
    "\n",
)
VARIABLES = {
    "WANDB_API_KEY": Variable(secret="wandb"),
    "DATA": Variable(value="/data/a b"),
    "OMP_NUM_THREADS": Variable(value="3"),
}

PLANS: dict[str, Callable[[], LaunchPlan]] = {
    "single_cpu": lambda: make_plan(make_spec(arguments=("--output_dir", "./outputs")), make_placement()),
    "single_hostile_arguments": lambda: make_plan(
        make_spec(script="my $HOME/tr ain.py", arguments=HOSTILE), make_placement()
    ),
    "single_torchrun_4_gpus": lambda: make_plan(
        make_spec(
            command=("torchrun", "--nproc_per_node", "4", "train.py"), resources=Resources(gpus_per_node=4)
        ),
        make_placement(gpus=4),
    ),
    "pytorch_1x2_cpu": lambda: make_plan(make_spec(pytorch(2, backend="gloo")), make_placement(cores=2)),
    "pytorch_2x4_infiniband": lambda: make_plan(
        make_spec(pytorch(8, 2), arguments=(*EPOCHS, "--local_rank", "$LOCAL_RANK")),
        make_placement(2, 4, infiniband=True),
    ),
    "pytorch_2x2_variables": lambda: make_plan(
        make_spec(pytorch(4, 2), environment_variables=VARIABLES), make_placement(2, 2)
    ),
    "pytorch_1x2_of_4_gpus": lambda: make_plan(make_spec(pytorch(2)), make_placement(gpus=4)),
    "pytorch_per_node_2x4": lambda: make_plan(
        make_spec(pytorch(None, 2), command=TORCH_LAUNCH), make_placement(2, 4)
    ),
    "pytorch_per_node_lightning": lambda: make_plan(
        make_spec(pytorch(None, 2), arguments=("--max_epochs", "50", "--devices", "2", "--num_nodes", "2")),
        make_placement(2, 2),
    ),
    "pytorch_per_node_elastic": lambda: make_plan(
        make_spec(pytorch(None, 2), command=ELASTIC), make_placement(2, 2)
    ),
    "pytorch_2x2_preview": lambda: make_plan(make_spec(pytorch(4, 2)), make_placement(2, 2), preview=True),
    "mpi_1x4_cpu": lambda: make_plan(
        make_spec(mpi(4), arguments=("--rank", "$OMPI_COMM_WORLD_RANK")), make_placement()
    ),
    "mpi_2x4_gpus": lambda: make_plan(make_spec(mpi(4, 2)), make_placement(2, 4, infiniband=True)),
    "mpi_2x1_horovod": lambda: make_plan(make_spec(mpi(1, 2)), make_placement(2, 1)),
    "mpi_1x2_preview": lambda: make_plan(make_spec(mpi(2)), make_placement(), preview=True),
    "tensorflow_1_worker": lambda: make_plan(make_spec(tensorflow()), make_placement()),
    "tensorflow_2_workers_1_node": lambda: make_plan(
        make_spec(tensorflow(2), resources=Resources(node_count=1)), make_placement(gpus=4)
    ),
    "tensorflow_2_workers_2_nodes": lambda: make_plan(make_spec(tensorflow(2)), make_placement(2, 2)),
    "tensorflow_parameter_servers": lambda: make_plan(
        make_spec(tensorflow(3, 2), resources=Resources(node_count=2)), make_placement(2)
    ),
    "tensorflow_preview": lambda: make_plan(make_spec(tensorflow(2)), make_placement(2), preview=True),
}


class TestPlans:
    @pytest.mark.parametrize("name", PLANS)
    def test_prints_exactly(self, name: str, is_golden: Callable[[str, str], None]) -> None:
        is_golden(name, show(PLANS[name]()))

    @pytest.mark.parametrize("name", PLANS)
    def test_comes_back_from_its_json_unchanged(self, name: str) -> None:
        made = PLANS[name]()
        assert LaunchPlan.from_json(made.to_json()) == made

    @pytest.mark.parametrize("name", PLANS)
    def test_no_two_processes_share_a_rank_or_a_log(self, name: str) -> None:
        processes = PLANS[name]().processes
        assert sorted(process.rank for process in processes) == list(range(len(processes)))
        assert len({process.log_name for process in processes}) == len(processes)

    def test_no_golden_file_is_left_over(self) -> None:
        assert {file.stem for file in GOLDEN.glob("*.txt")} == set(PLANS)
