"""Notes which versions of datasets a run reads."""

from __future__ import annotations

from datastores.run_inputs import dataset_versions
from jobs.lineage.recorders import recorders
from jobs.models import DatasetUse, Run
from trainhub_launch.spec import RunSpec


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
