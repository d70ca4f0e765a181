"""Specs in the formats of other launchers. Every spec that can be planned has a form in each; what a format
cannot hold is a note."""

from __future__ import annotations

from jobs.exports import azureml, commands, dstack, sbatch, skypilot, torchx, trainjob
from jobs.exports.export import ExportFormat, SpecExport
from trainhub_launch.errors import SpecError
from trainhub_launch.spec import RunSpec

FORMATS: dict[str, ExportFormat] = {
    "sbatch": ExportFormat("Slurm (sbatch)", "sbatch run.sbatch", sbatch.render),
    "commands": ExportFormat("Commands for each node", "bash node_0.sh ADDRESS_OF_NODE_0", commands.render),
    "azureml": ExportFormat("Azure ML job", "az ml job create --file job.yml", azureml.render),
    "trainjob": ExportFormat("Kubeflow TrainJob", "kubectl apply -f trainjob.yaml", trainjob.render),
    "skypilot": ExportFormat("SkyPilot task", "sky launch task.yaml", skypilot.render),
    "dstack": ExportFormat("dstack task", "dstack apply -f task.dstack.yml", dstack.render),
    "torchx": ExportFormat("torchx AppDef", "torchx run component.py:trainhub_run", torchx.render),
}


def export_spec(spec: RunSpec, to: str) -> SpecExport:
    """Returns the spec in a format of FORMATS. Raises SpecError for another one, and for a spec that cannot
    be planned."""
    if to not in FORMATS:
        raise no_export_format(to)
    return FORMATS[to].render(spec)


def no_export_format(name: str) -> SpecError:
    return SpecError("to", f"{name!r:.60} is no format; use {' or '.join(FORMATS)}")
