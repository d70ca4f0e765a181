"""Shows the datasets of a run as what MLflow's `log_input` logs: in comparisons, searches, certificates."""

from __future__ import annotations

import json
from collections.abc import Mapping

from datastores.models import DatasetVersion
from jobs.models import Run
from tracking.models import RunInput
from trainhub_launch.data.source_types import DATASET_SOURCE

CONTEXT = "mlflow.data.context"
# Beside it: the digest is that of a list from which the files differed.
CHANGED, CHANGED_WORDS = "trainhub.data.changed", "some files were not those of this version"


def record_inputs(run: Run, versions: Mapping[str, DatasetVersion]) -> None:
    """See jobs.lineage.recorders.InputRecorder. The digest is the SHA-256 of the list of the files."""
    # Two inputs may be the same version.
    RunInput.objects.bulk_create(
        [_row(run, name, version) for name, version in versions.items()], ignore_conflicts=True
    )


def note_changed_inputs(run: Run, versions: Mapping[str, DatasetVersion]) -> None:
    """See jobs.lineage.recorders.InputRecorder."""
    for version in versions.values():
        key = {"name": version.dataset.name, "digest": version.manifest.sha256}
        for row in RunInput.objects.filter(run=run, source_type=DATASET_SOURCE, **key):
            row.tags = {**row.tags, CHANGED: CHANGED_WORDS}
            row.save(update_fields=["tags"])


def _row(run: Run, name: str, version: DatasetVersion) -> RunInput:
    place = f"{version.dataset.datastore.place}/{version.dataset.path}".rstrip("/")
    return RunInput(
        run=run,
        name=version.dataset.name,
        digest=version.manifest.sha256,
        source_type=DATASET_SOURCE,
        source=json.dumps({"uri": place, "dataset": version.dataset.name, "version": version.number}),
        profile=json.dumps({"files": version.files, "bytes": version.bytes}),
        tags={CONTEXT: name},
    )
