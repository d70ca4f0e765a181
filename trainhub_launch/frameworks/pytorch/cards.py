"""The choices of the wizard for PyTorch: TrainHub starts every process, or one per node."""

from __future__ import annotations

from trainhub_launch.distribution import MAX_NODES, MAX_PROCESSES, Distribution, narrow
from trainhub_launch.frameworks.form import ChoiceField, FormCard, NumberField
from trainhub_launch.frameworks.pytorch.configuration import PyTorchConfiguration


def _has_process_count(distribution: Distribution) -> bool:
    return narrow(distribution, PyTorchConfiguration).process_count is not None


def _has_no_process_count(distribution: Distribution) -> bool:
    return not _has_process_count(distribution)


def _backend(name: str) -> ChoiceField:
    return ChoiceField(
        name,
        "Backend",
        "distribution.communication_backend",
        "nccl",
        choices=(("nccl", "NCCL (GPUs)"), ("gloo", "gloo (CPUs)"), ("mpi", "MPI")),
        help_text="Checked against the resources; the script itself names it to init_process_group.",
    )


PER_PROCESS = FormCard(
    "pytorch_process",
    "PyTorch, per process",
    "TrainHub starts every process itself; the script only calls init_process_group. "
    "The right choice for most distributed training.",
    variables="RANK LOCAL_RANK WORLD_SIZE NODE_RANK MASTER_ADDR MASTER_PORT",
    fields=(
        NumberField(
            "pp_process_count",
            "Total processes",
            "distribution.process_count",
            "2",
            MAX_PROCESSES,
            help_text="GPUs per node × nodes. Without GPUs: any number.",
        ),
        NumberField(
            "pp_node_count",
            "Nodes",
            "distribution.node_count",
            "1",
            MAX_NODES,
            help_text="Every node gets the same number of processes, so this must divide their total.",
        ),
        _backend("pp_backend"),
    ),
    configuration=PyTorchConfiguration,
    shows=_has_process_count,
)

PER_NODE = FormCard(
    "pytorch_node",
    "PyTorch, per node",
    "TrainHub starts one process on each node, and your launcher (torchrun, torch.distributed.launch, "
    "Lightning) "
    "starts the rest. The launcher sets LOCAL_RANK.",
    variables="NODE_RANK MASTER_ADDR MASTER_PORT",
    fields=(
        NumberField(
            "pn_node_count",
            "Nodes",
            "distribution.node_count",
            "1",
            MAX_NODES,
            help_text="One process is started on each.",
        ),
        _backend("pn_backend"),
    ),
    configuration=PyTorchConfiguration,
    shows=_has_no_process_count,
    extra_paths={"distribution.process_count": "pn_node_count"},
)
