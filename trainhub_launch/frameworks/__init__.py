"""One planner per framework. A new framework is one module here and one row of the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trainhub_launch.environment import Ports
from trainhub_launch.frameworks import mpi, pytorch, single, tensorflow
from trainhub_launch.placement import Placement
from trainhub_launch.plan import LaunchPlan
from trainhub_launch.spec import RunSpec


@dataclass(frozen=True)
class Framework:
    """`sentence` tells a person when to choose it."""

    label: str
    sentence: str
    planner: Callable[[RunSpec, Placement, Ports], LaunchPlan]


FRAMEWORKS: dict[str, Framework] = {
    "single": Framework(
        "Single",
        "One process on one node; it sees every GPU asked for, and may start more processes itself.",
        single.plan,
    ),
    "pytorch": Framework(
        "PyTorch",
        (
            "torch.distributed: TrainHub starts every process and tells it its rank, or one a node for "
            "torchrun "
            "or Lightning."
        ),
        pytorch.plan,
    ),
    "mpi": Framework(
        "MPI",
        "Horovod, DeepSpeed or mpi4py: TrainHub builds the mpirun line and starts the ranks on every node.",
        mpi.plan,
    ),
    "tensorflow": Framework(
        "TensorFlow",
        "tf.distribute: every worker, parameter server and chief gets its own TF_CONFIG.",
        tensorflow.plan,
    ),
}


def framework_of(spec: RunSpec) -> str:
    """The key of FRAMEWORKS that `spec` asks for."""
    return "single" if spec.distribution is None else spec.distribution.type
