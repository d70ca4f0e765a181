"""The choice "MPI" of the wizard."""

from __future__ import annotations

from trainhub_launch.distribution import MAX_NODES, MAX_PROCESSES
from trainhub_launch.frameworks.form import FormCard, NumberField
from trainhub_launch.frameworks.mpi.configuration import MpiConfiguration

CARD = FormCard(
    "mpi",
    "MPI",
    "TrainHub writes the whole mpirun line: for Horovod, DeepSpeed and mpi4py. "
    "Leave mpirun and deepspeed out of your own command.",
    variables="OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_LOCAL_RANK MASTER_ADDR MASTER_PORT",
    fields=(
        NumberField(
            "mpi_process_count",
            "Processes per node",
            "distribution.process_count_per_node",
            "1",
            MAX_PROCESSES,
            help_text="GPUs per node; 1 where your script starts its own processes.",
        ),
        NumberField("mpi_node_count", "Nodes", "distribution.node_count", "1", MAX_NODES),
    ),
    configuration=MpiConfiguration,
)
