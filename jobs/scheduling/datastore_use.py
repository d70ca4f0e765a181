"""Which runs need a datastore or a dataset (see datastores.uses)."""

from __future__ import annotations

from datastores.models import Dataset, Datastore
from jobs.models import Run
from jobs.states import FINAL, RunKind


def find_use(datastore: Datastore) -> str:
    """Returns the run that is not over and reads the datastore or writes into it, as a phrase, "" if there is
    none."""
    runs = Run.objects.not_deleted().filter(workspace=datastore.workspace, kind=RunKind.JOB)
    for number, spec in runs.exclude(state__in=FINAL).order_by("number").values_list("number", "spec"):
        parts = (spec.get("outputs", {}), spec.get("checkpoint", {})) if isinstance(spec, dict) else ()
        used = [*spec.get("inputs", {}).values(), *parts] if parts else []
        if any(place.get("datastore") == datastore.name for place in used):
            return f"run {number}"
    return ""


def find_dataset_use(dataset: Dataset) -> str:
    """Returns the first run that has read the dataset, as a phrase, "" if there is none. One in the list
    of deleted runs counts: it can come back."""
    runs = Run.objects.filter(dataset_uses__version__dataset=dataset).order_by("number")
    number = runs.values_list("number", flat=True).first()
    return "" if number is None else f"run {number}"
