"""Converts the parts of the wizard to a RunSpec and back; cloning a run uses the way back. Pure."""

from __future__ import annotations

from jobs.exports.spec_comment import NO_SOURCE
from jobs.wizard.parts import DistributionPart, EnvironmentPart, Parts, ResourcesPart, SourcePart
from trainhub_launch.errors import SpecError
from trainhub_launch.spec import Resources, RunSpec
from trainhub_launch.spec_reader import read_spec


def assemble(parts: Parts) -> RunSpec:
    """Returns the RunSpec of the parts. Raises SpecError as the API would, because both read the same
    JSON."""
    if parts.source.source is None:
        raise SpecError("source", "Choose what to run: upload your code, or take an example.")
    spec = RunSpec(
        source=parts.source.source,
        script=parts.source.script,
        arguments=parts.source.arguments,
        command=parts.source.command,
        inputs=parts.source.inputs,
        distribution=parts.distribution.distribution,
        resources=Resources(
            cluster=parts.resources.cluster,
            node_count=parts.distribution.node_count,
            gpus_per_node=parts.resources.gpus_per_node,
            memory=parts.resources.memory,
            cpus=parts.resources.cpus,
            disk=parts.resources.disk,
            all_gpus=parts.resources.all_gpus,
        ),
        limits=parts.resources.limits,
        checkpoint=parts.resources.checkpoint,
        outputs=parts.resources.outputs,
        priority=parts.resources.priority,
        environment=parts.environment.environment,
        environment_variables=parts.environment.variables,
        experiment=parts.environment.experiment,
        display_name=parts.environment.display_name,
        tags=parts.environment.tags,
    )
    # The reader checks what the form fields do not, such as fields that contradict each other.
    return read_spec(spec.to_json())


def take_apart(spec: RunSpec) -> Parts:
    """Returns the parts from which `assemble` makes `spec`. A node_count in the resources that only repeats
    the distribution's is dropped."""
    distribution = spec.distribution
    # In a spec of the API both fields may name the number of nodes; the form has one field for it.
    in_resources = distribution is not None and distribution.nodes_field == "resources.node_count"
    source = None if spec.source == NO_SOURCE else spec.source
    return Parts(
        source=SourcePart(source, spec.script, spec.arguments, spec.command, spec.inputs),
        distribution=DistributionPart(distribution, spec.resources.node_count if in_resources else None),
        resources=ResourcesPart(
            spec.resources.cluster,
            spec.resources.gpus_per_node,
            spec.limits,
            spec.priority,
            spec.resources.memory,
            spec.resources.cpus,
            spec.resources.disk,
            spec.checkpoint,
            spec.outputs,
            spec.resources.all_gpus,
        ),
        environment=EnvironmentPart(
            spec.environment, spec.environment_variables, spec.experiment, spec.display_name, spec.tags
        ),
    )
