"""Notes which versions of datasets a run reads."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from datastores.run_inputs import dataset_versions
from datastores.states import DatastoreKind
from jobs.lineage.recorders import recorders
from jobs.models import DatasetUse, Run
from trainhub_launch.machine import HUB_DATA
from trainhub_launch.spec import USE, RunSpec
from trainhub_launch.spec_reader import read_spec


def data_capabilities(runs: Collection[str]) -> dict[str, frozenset[str]]:
    """Returns what nodes must be able to do for the datasets of these runs, besides what their specs say. One
    query, or none without runs."""
    if not runs:
        return {}
    uses = DatasetUse.objects.filter(run__in=runs, version__dataset__datastore__kind=DatastoreKind.HUB)
    return {run: frozenset({HUB_DATA}) for run in uses.values_list("run", flat=True)}


def record_uses(run: Run, spec: RunSpec) -> None:
    """Raises SpecError for a version that is not there any more."""
    versions = dataset_versions(spec, run.workspace)
    if not versions:
        return
    # Two inputs may be the same version.
    keys = dict.fromkeys(version.pk for version in versions.values())
    DatasetUse.objects.bulk_create(DatasetUse(run=run, version_id=key) for key in keys)
    for recorder in recorders():
        recorder.record_inputs(run, versions)


def note_changed_files(run: Run, names: Iterable[str]) -> None:
    """Notes that the run went on although files of these inputs were not those of their versions."""
    spec = read_spec(run.spec)
    inputs = {name: spec.inputs[name] for name in names if name in spec.inputs}
    versions = dataset_versions(replace(spec, inputs=inputs), run.workspace)
    keys = [version.pk for version in versions.values()]
    DatasetUse.objects.filter(run=run, version__in=keys).update(is_exact=False)
    for recorder in recorders():
        recorder.note_changed_inputs(run, versions)


def list_inexact_inputs(run: Run) -> frozenset[str]:
    """Returns the inputs of a stored run whose files were not exactly those of their versions. One query, or
    none if the run could not go on with such files."""
    inputs = run.spec.get("inputs", {})
    if not any(item.get("if_changed") == USE for item in inputs.values()):
        return frozenset()
    uses = run.dataset_uses.filter(is_exact=False)
    versions = set(uses.values_list("version__dataset__name", "version__number"))
    return frozenset(
        name for name, item in inputs.items() if (item.get("dataset"), item.get("version")) in versions
    )
