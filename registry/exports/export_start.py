"""Starts an export: submits an ordinary run, and stores an export that waits for the run's end."""

from __future__ import annotations

from dataclasses import replace

from django.db import transaction

from jobs.models import Run, Snapshot
from jobs.scheduling import run_actions
from jobs.scheduling.default_cluster import default_cluster
from jobs.wizard.environment_form import read_environment
from registry.errors import RegistryError
from registry.exports.bundle import pack
from registry.exports.options import Options, check
from registry.exports.states import ExportState
from registry.models import Export, ModelVersion
from trainhub_launch.errors import SpecError
from trainhub_launch.spec import Limits, Resources, RunSpec, SnapshotSource
from workspaces import audit
from workspaces.access import Principal

EXPERIMENT = "onnx-export"
LONGEST_S = 2 * 3600
# Fields of a run's spec -> fields of the form for an export.
FIELDS = {
    "environment.name": "environment",
    "environment.version": "environment",
    "resources.cluster": "cluster",
}


def start(version: ModelVersion, options: Options, who: Principal) -> Export:
    """Submits the run of an export and returns the export. Raises RegistryError naming the field, also while
    an equal export is under way."""
    check(options, version)
    options = replace(options, cluster=options.cluster or default_cluster(who))
    waiting = Export.objects.filter(version=version, state=ExportState.WAITING).select_related("run")
    same = waiting.filter(options=options.to_json()).first()
    if same is not None:
        raise RegistryError(
            "version", f"the same export is already running as {same.run}; wait until it ends"
        )
    spec = spec_of(version, options, pack(version, options, who))
    with transaction.atomic():
        run = _submitted(spec, who)
        export = Export.objects.create(
            version=version, run=run, options=options.to_json(), created_by=who.user
        )
        subject = f"{version.model.name} version {version.number}"
        audit.record(who.user, "model.export", subject, who.workspace, run=run.pk, format=export.format)
    return export


def spec_of(version: ModelVersion, options: Options, snapshot: Snapshot) -> RunSpec:
    name, number = version.model.name, version.number
    return RunSpec(
        source=SnapshotSource(id=snapshot.sha256),
        experiment=EXPERIMENT,
        display_name=f"{name[:150]} version {number} to ONNX",
        script="export_onnx.py",
        resources=Resources(cluster=options.cluster),
        environment=read_environment(options.environment),
        limits=Limits(timeout_s=LONGEST_S),
        tags={"model": name, "version": str(number), "export": "onnx"},
    )


def _submitted(spec: RunSpec, who: Principal) -> Run:
    try:
        return run_actions.submit(spec, who)
    except SpecError as error:
        raise RegistryError(FIELDS.get(error.field, error.field), error.message) from error
