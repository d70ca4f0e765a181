"""Which runs still need a datastore (see datastores.uses)."""

from __future__ import annotations

from datastores.models import Datastore
from jobs.models import Run
from jobs.states import FINAL, RunKind


def find_use(datastore: Datastore) -> str:
    """Returns the run that is not over and reads the datastore, as a phrase, "" if there is none."""
    runs = Run.objects.not_deleted().filter(workspace=datastore.workspace, kind=RunKind.JOB)
    for number, spec in runs.exclude(state__in=FINAL).order_by("number").values_list("number", "spec"):
        inputs = spec.get("inputs", {}) if isinstance(spec, dict) else {}
        if any(data_input.get("datastore") == datastore.name for data_input in inputs.values()):
            return f"run {number}"
    return ""
