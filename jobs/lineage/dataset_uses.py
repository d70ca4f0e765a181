"""Notes which versions of datasets a run reads."""

from __future__ import annotations

from collections.abc import Collection

from datastores.run_inputs import dataset_versions
from datastores.states import DatastoreKind
from jobs.lineage.recorders import recorders
from jobs.models import DatasetUse, Run
from trainhub_launch.machine import HUB_DATA
from trainhub_launch.spec import RunSpec


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
