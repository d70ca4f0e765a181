"""Step 2: how many processes there are, and who starts them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.forms.boundfield import BoundField

from jobs.wizard.forms import Raw, StepForm, whole_number
from jobs.wizard.parts import DistributionPart
from trainhub_launch.distribution import (
    MAX_NODES,
    MAX_PROCESSES,
    MAX_TENSORFLOW_TASKS,
    Distribution,
    MpiConfiguration,
    PyTorchConfiguration,
    TensorflowConfiguration,
)

BACKENDS = [("nccl", "NCCL (GPUs)"), ("gloo", "gloo (CPUs)"), ("mpi", "MPI")]
ABOUT_BACKEND = "Checked against the resources; the script itself names it to init_process_group."


@dataclass(frozen=True)
class Kind:
    """One radio card. `fields`: spec field of the distribution -> form field."""

    name: str
    title: str
    sentence: str
    sets: str
    fields: dict[str, str]

    @property
    def set_names(self) -> list[str]:
        return self.sets.split()


KINDS = (
    Kind(
        "single",
        "One process",
        (
            "Your script or command runs once, on one node. A launcher of your own may still use "
            "several GPUs "
            "of that node."
        ),
        "",
        {},
    ),
    Kind(
        "pytorch_process",
        "PyTorch, per process",
        "TrainHub starts every process itself; the script only calls init_process_group. "
        "The right choice for most distributed training.",
        "RANK LOCAL_RANK WORLD_SIZE NODE_RANK MASTER_ADDR MASTER_PORT",
        {
            "process_count": "pp_process_count",
            "node_count": "pp_node_count",
            "communication_backend": "pp_backend",
        },
    ),
    Kind(
        "pytorch_node",
        "PyTorch, per node",
        "TrainHub starts one process on each node, and your launcher (torchrun, torch.distributed.launch, "
        "Lightning) "
        "starts the rest. LOCAL_RANK is never set: that is the launcher's.",
        "NODE_RANK MASTER_ADDR MASTER_PORT",
        {
            "process_count": "pn_node_count",
            "node_count": "pn_node_count",
            "communication_backend": "pn_backend",
        },
    ),
    Kind(
        "mpi",
        "MPI",
        "TrainHub writes the whole mpirun line: for Horovod, DeepSpeed and mpi4py. "
        "Leave mpirun and deepspeed out of your own command.",
        "OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_LOCAL_RANK MASTER_ADDR MASTER_PORT",
        {"process_count_per_node": "mpi_process_count", "node_count": "mpi_node_count"},
    ),
    Kind(
        "tensorflow",
        "TensorFlow",
        "Every worker gets its own TF_CONFIG with the addresses of all, before the script starts: "
        "for MultiWorkerMirroredStrategy.",
        "TF_CONFIG",
        {
            "worker_count": "tf_worker_count",
            "parameter_server_count": "tf_server_count",
            "node_count": "tf_node_count",
        },
    ),
)
BY_NAME = {kind.name: kind for kind in KINDS}


class DistributionForm(StepForm[DistributionPart]):
    template = "jobs/wizard/_distribution.html"

    kind = forms.ChoiceField(label="Distribution", choices=[(kind.name, kind.title) for kind in KINDS])
    pp_process_count = whole_number(
        "Processes in all",
        least=1,
        most=MAX_PROCESSES,
        help_text="GPUs per node × nodes. Without GPUs: as many as you like.",
    )
    pp_node_count = whole_number(
        "Nodes",
        least=1,
        most=MAX_NODES,
        help_text="The processes are dealt evenly, so this must divide them.",
    )
    pp_backend = forms.ChoiceField(label="Backend", choices=BACKENDS, help_text=ABOUT_BACKEND)
    pn_node_count = whole_number(
        "Nodes", least=1, most=MAX_NODES, help_text="One process is started on each."
    )
    pn_backend = forms.ChoiceField(label="Backend", choices=BACKENDS, help_text=ABOUT_BACKEND)
    mpi_process_count = whole_number(
        "Processes per node",
        least=1,
        most=MAX_PROCESSES,
        help_text="GPUs per node; 1 where your script starts its own processes.",
    )
    mpi_node_count = whole_number("Nodes", least=1, most=MAX_NODES)
    tf_worker_count = whole_number("Workers", least=1, most=MAX_TENSORFLOW_TASKS)
    tf_server_count = whole_number(
        "Parameter servers",
        least=0,
        most=MAX_TENSORFLOW_TASKS,
        help_text=(
            "0 for MultiWorkerMirroredStrategy. With parameter servers a chief is added, which "
            "decides the outcome."
        ),
    )
    tf_node_count = whole_number(
        "Nodes",
        least=1,
        most=MAX_NODES,
        required=False,
        help_text="Blank: a node for each worker. Fewer: the workers are dealt in blocks.",
    )

    def clean(self) -> dict[str, Any]:
        kind = BY_NAME.get(self.cleaned_data.get("kind", ""))
        self.keep_errors_of({"kind", *(kind.fields.values() if kind else ())})
        return self.cleaned_data

    def cards(self) -> list[tuple[Kind, bool, list[BoundField]]]:
        """Each kind, whether it is chosen, and its fields in order."""
        chosen = (self.typed.get("kind") or [""])[0]
        return [
            (kind, kind.name == chosen, [self[name] for name in dict.fromkeys(kind.fields.values())])
            for kind in KINDS
        ]

    def part(self) -> DistributionPart:
        data = self.cleaned_data
        if data["kind"] == "pytorch_process":
            return DistributionPart(
                PyTorchConfiguration(data["pp_backend"], data["pp_process_count"], data["pp_node_count"])
            )
        if data["kind"] == "pytorch_node":
            return DistributionPart(PyTorchConfiguration(data["pn_backend"], None, data["pn_node_count"]))
        if data["kind"] == "mpi":
            return DistributionPart(MpiConfiguration(data["mpi_process_count"], data["mpi_node_count"]))
        if data["kind"] == "tensorflow":
            return DistributionPart(
                TensorflowConfiguration(data["tf_worker_count"], data["tf_server_count"]),
                data["tf_node_count"],
            )
        return DistributionPart()

    @classmethod
    def raw(cls, part: DistributionPart) -> Raw:
        given = {
            "kind": kind_of(part.distribution),
            "pp_process_count": 2,
            "pp_node_count": 1,
            "pp_backend": "nccl",
            "pn_node_count": 1,
            "pn_backend": "nccl",
            "mpi_process_count": 1,
            "mpi_node_count": 1,
            "tf_worker_count": 2,
            "tf_server_count": 0,
            "tf_node_count": "",
        }
        chosen = part.distribution
        fields = BY_NAME[kind_of(chosen)].fields
        if isinstance(chosen, PyTorchConfiguration) and chosen.process_count is None:
            fields = {name: field for name, field in fields.items() if name != "process_count"}
        given |= {field: getattr(chosen, name) for name, field in fields.items() if hasattr(chosen, name)}
        if isinstance(chosen, TensorflowConfiguration):
            given["tf_node_count"] = "" if part.node_count is None else part.node_count
        return {name: [str(value)] for name, value in given.items()}

    @property
    def paths(self) -> dict[str, str]:
        kind = BY_NAME.get((self.typed.get("kind") or [""])[0])
        fields = kind.fields if kind else {}
        own = {f"distribution.{name}": field for name, field in fields.items()}
        return own | {"distribution": "kind", "resources.node_count": fields.get("node_count", "kind")}


def kind_of(distribution: Distribution) -> str:
    if isinstance(distribution, PyTorchConfiguration):
        return "pytorch_node" if distribution.process_count is None else "pytorch_process"
    return "single" if distribution is None else distribution.type
