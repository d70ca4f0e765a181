"""The template context of the Overview tab."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from jobs import outputs
from jobs.lineage.output_versions import list_versions
from jobs.models import Artifact, Run, RunTag, StoredOutput
from jobs.states import RunKind
from jobs.views.tabs import Tab
from tracking.artifacts.pages import register_url
from tracking.curves.curve_list import children_of
from tracking.models import Param, UsageEntry
from tracking.notes import render
from tracking.notes_tab import note_of
from tracking.overview.gpu_means import gpu_means
from tracking.overview.hyperparameters import read_hyperparameters
from tracking.overview.metric_rows import metric_rows
from tracking.overview.origin import MAX_INPUTS, read_inputs, read_origin
from tracking.usage.usage_report import total

COMMIT_TAG, BRANCH_TAG = "mlflow.source.git.commit", "mlflow.source.git.branch"
MAX_PARAMS = 30
MAX_OUTPUTS = 8


def context(run: Run, attempt: int, _: HttpRequest) -> dict[str, Any]:
    """Returns the template context. Metrics, params, usage and note belong to the run, GPU means and outputs
    to the attempt."""
    rows, count = metric_rows(run)
    files = outputs.for_attempt(run, attempt).order_by("path")
    stored_files = outputs.stored_for_attempt(run, attempt)
    first_outputs: list[Artifact | StoredOutput] = [*files[:MAX_OUTPUTS], *stored_files[:MAX_OUTPUTS]]
    first_outputs.sort(key=lambda row: row.path)
    params = list(Param.objects.filter(run=run).order_by("key").values_list("key", "value")[: MAX_PARAMS + 1])
    inputs = read_inputs(run)
    note, usage = note_of(run), total(UsageEntry.objects.filter(run=run))
    tags = dict(RunTag.objects.filter(run=run, key__in=(COMMIT_TAG, BRANCH_TAG)).values_list("key", "value"))
    return {
        "is_job": run.kind == RunKind.JOB,
        "metric_rows": rows,
        "metric_count": count,
        "params": params[:MAX_PARAMS],
        "has_more_params": len(params) > MAX_PARAMS,
        "hyperparameters": read_hyperparameters(run.spec.get("arguments", [])).without(dict(params)),
        "commit": tags.get(COMMIT_TAG, ""),
        "branch": tags.get(BRANCH_TAG, ""),
        "gpu_means": gpu_means(run, attempt),
        "usage": usage if usage.runs else None,
        "outputs": first_outputs[:MAX_OUTPUTS],
        "output_count": files.count() + stored_files.count(),
        "register_url": register_url(),
        "origins": list_versions(run)[:MAX_OUTPUTS],
        "children": children_of(run),
        "origin": read_origin(run),
        "inputs": inputs[:MAX_INPUTS],
        "has_more_inputs": len(inputs) > MAX_INPUTS,
        "note": render(note) if note else "",
    }


TAB = Tab("Overview", context, ("css/artifacts.css", "css/overview.css"))
