"""What every example must show when it trains: on one machine, and on two hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.journeys.runs import example_spec

MEET = ("--node_rank", "$NODE_RANK", "--master_addr", "$MASTER_ADDR", "--master_port", "$MASTER_PORT")
ALONE, FIRST, SECOND = "70_driver_log.txt", "70_driver_log_0.txt", "70_driver_log_1.txt"


@dataclass(frozen=True)
class Training:
    """`changes` to the example's spec, `logs`: name -> what must stand in it, `output`: what it leaves,
    `metrics`: key -> how many values it logs, `params`: those that it logs, `child_runs`: how many its MLflow
    client opens beside it, `checkpoint`: the name of the one that it saves after each epoch."""

    example: str
    logs: Mapping[str, tuple[str, ...]]
    output: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, int] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)
    child_runs: int = 0
    checkpoint: str = ""

    def spec(self, cluster: str = "local") -> dict[str, Any]:
        """For a node whose own interpreter is of the frameworks environment."""
        return self.curated_spec(cluster) | {"environment": {"name": "system", "version": ""}}

    def curated_spec(self, cluster: str = "local") -> dict[str, Any]:
        """In the curated environment of the example."""
        spec = example_spec(self.example)
        for name, value in self.changes.items():
            spec[name] = {**spec.get(name, {}), **value} if isinstance(value, dict) else value
        spec["resources"] = {**spec.get("resources", {}), "cluster": cluster}
        return spec


def ranks(count: int, of: str) -> dict[str, tuple[str, ...]]:
    """One log for each rank, in which that rank says who it is; `of` has {rank} where its number stands."""
    return {f"70_driver_log_{rank}.txt": (of.format(rank=rank),) for rank in range(count)}


def launched(program: tuple[str, ...], nodes: int, each: int, *script: str) -> dict[str, Any]:
    """The changes for a launcher on each node that starts `each` processes there."""
    command = [*program, "--nproc_per_node", str(each), "--nnodes", str(nodes), *MEET]
    use_env = ["--use_env"] if program[0] == "python" else []
    return {"command": [*command, *use_env, "train.py", *script], "distribution": {"node_count": nodes}}


TORCHRUN, LAUNCH = ("torchrun",), ("python", "-m", "torch.distributed.launch")
QUICK = ("--epochs", "2")
BERT = ("--output_dir", "outputs/model", "--num_train_epochs", "1")
PARAMETER_SERVER = {
    "70_driver_log_chief.txt": ("chief of 2 workers and 1 servers", "variables on /job:ps/", "epoch 2/2"),
    "70_driver_log_worker_0.txt": ("worker 0 of 2 serves",),
    "70_driver_log_worker_1.txt": ("worker 1 of 2 serves",),
    "70_driver_log_ps_0.txt": ("ps 0 of 1 serves",),
}
WORKERS = {
    f"70_driver_log_worker_{index}.txt": (f"worker {index}: 2 replicas in step", "epoch  2/2")
    for index in range(2)
}
FITTING = {
    f"70_driver_log_worker_{index}.txt": (f"worker {index}: 2 replicas in step", "Epoch 2/2")
    for index in range(2)
}
# Without a launcher: what torchrun and MPI start is trained on two hosts.
ONE_MACHINE = (
    Training("hello", {ALONE: ("step 10/10",)}, "model.json", {"arguments": ["--seconds", "0.1"]}),
    Training("digits-single", {ALONE: ("epoch  2/2",)}, "model.pt", {"arguments": QUICK}),
)
BY_PROCESS = {"process_count": 2, "node_count": 2}
ONE_EACH = {"process_count_per_node": 1, "node_count": 2}
TWO_HOSTS = (
    Training(
        "digits-ddp",
        ranks(4, "rank {rank} of 4 on cpu, gloo"),
        "model.pt",
        {"arguments": QUICK, "distribution": {"process_count": 4, "node_count": 2}},
        checkpoint="last.pt",
    ),
    Training(
        "digits-torchrun",
        {FIRST: ("rank 0 of 4 on", "rank 1 of 4 on"), SECOND: ("rank 2 of 4 on", "rank 3 of 4 on")},
        "model.pt",
        launched(TORCHRUN, 2, 2, *QUICK),
    ),
    Training(
        "digits-launch", ranks(2, "rank {rank} of 2 on cpu, gloo"), "model.pt", launched(LAUNCH, 2, 1, *QUICK)
    ),
    Training(
        "lightning-digits",
        {FIRST: ("rank 0 of 4 on", "rank 1 of 4 on"), SECOND: ("rank 2 of 4 on", "rank 3 of 4 on")},
        "model.ckpt",
        {
            "arguments": ["--max_epochs", "2", "--devices", "2", "--num_nodes", "2"],
            "distribution": {"node_count": 2},
        },
        metrics={"loss": 2, "accuracy": 2},
        params={"learning_rate": "0.001"},
        checkpoint="last.ckpt",
    ),
    Training(
        "transformers-tiny",
        ranks(2, "rank {rank} of 2 on cpu:0, distributed"),
        "model/model.safetensors",
        {"arguments": [*BERT, "--local_rank", "$LOCAL_RANK"], "distribution": BY_PROCESS},
        metrics={"loss": 1},
        params={"learning_rate": "0.001"},
        # Its client opens another run for the evaluation: nobody told it of the first one.
        child_runs=1,
    ),
    Training(
        "transformers-torchrun",
        ranks(2, "rank {rank} of 2 on cpu:0, distributed"),
        "model/model.safetensors",
        launched(TORCHRUN, 2, 1, *BERT),
    ),
    Training(
        "mpi-digits",
        ranks(4, "rank {rank} of 4 on"),
        "model.npz",
        {"arguments": ["--epochs", "5"], "distribution": {"process_count_per_node": 2, "node_count": 2}},
    ),
    Training(
        "horovod-digits",
        ranks(2, "rank {rank} of 2, 0 on its node, cpu"),
        "model.pt",
        {"arguments": QUICK, "distribution": ONE_EACH},
    ),
    Training(
        "horovod-tensorflow",
        ranks(2, "rank {rank} of 2, 0 on its node"),
        "model.keras",
        {"arguments": QUICK, "distribution": ONE_EACH},
    ),
    Training(
        "deepspeed-digits",
        ranks(2, "rank {rank} of 2, 0 on its node, gloo, ZeRO 2"),
        "model.pt",
        {"arguments": QUICK, "distribution": ONE_EACH},
    ),
    Training(
        "tf-multiworker",
        WORKERS,
        "model.keras",
        {"arguments": QUICK, "resources": {"node_count": 2}},
        metrics={"loss": 2, "accuracy": 2},
    ),
    Training("tf-keras-fit", FITTING, "model.keras", {"arguments": QUICK, "resources": {"node_count": 2}}),
    Training(
        "tf-parameter-server",
        PARAMETER_SERVER,
        "model.npz",
        {"arguments": QUICK, "resources": {"node_count": 2}},
    ),
)
