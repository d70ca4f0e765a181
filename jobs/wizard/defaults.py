"""The forms of a draft, with the resources that it gets until its user chooses others."""

from __future__ import annotations

from typing import cast

from clusters.kinds import backend_of
from clusters.visibility import clusters_of
from jobs.models import Draft
from jobs.scheduling.default_cluster import default_cluster
from jobs.wizard import steps
from jobs.wizard.forms import StepForm
from jobs.wizard.parts import DistributionPart, ResourcesPart
from jobs.wizard.resources_form import ResourcesForm
from trainhub_launch.frameworks import framework_of
from trainhub_launch.spec import ExampleSource, Resources, RunSpec
from workspaces.access import Principal


def draft_forms(draft: Draft, who: Principal) -> dict[str, StepForm[object]]:
    """Returns the bound form of every step. A draft whose resources were never saved gets the default
    cluster, and a GPU for each process as far as a node of that cluster has them."""
    forms = steps.forms_of(draft.steps)
    if "resources" in draft.steps:
        return forms
    cluster = default_cluster(who)
    max_gpus = _max_gpus(cluster, who)
    gpus = min(max_gpus, processes_per_node(forms["distribution"])) if max_gpus else 0
    forms["resources"] = cast(
        "StepForm[object]", ResourcesForm(ResourcesForm.raw(ResourcesPart(cluster, gpus)))
    )
    return forms


def _max_gpus(name: str, who: Principal) -> int:
    """Returns the number of GPUs of the largest node of the cluster that takes runs or can be added."""
    cluster = clusters_of(who.workspace).filter(name=name).first()
    nodes = backend_of(cluster).nodes(cluster, who.workspace) if cluster else ()
    able = [node for node in nodes if node.takes_runs or node.is_coming]
    # If no GPU works at present, the run waits for one rather than start without.
    return max((node.gpus_usable for node in able), default=0) or max(
        (node.gpus_total for node in able), default=0
    )


def processes_per_node(form: StepForm[object]) -> int:
    """Returns the number of processes that the form of the distribution starts on each node; 1 while that
    form is wrong."""
    part = cast("DistributionPart", form.part()) if form.is_valid() else DistributionPart()
    # Without GPUs the demand counts the processes of a node. It does not depend on what they run.
    spec = RunSpec(
        source=ExampleSource("hello"),
        distribution=part.distribution,
        resources=Resources(node_count=part.node_count),
    )
    return framework_of(spec).demand(spec).slots
