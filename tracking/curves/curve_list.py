"""Lists the metrics of runs with their last, min and max values."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.models import Run
from jobs.states import FINAL
from tracking.curves.lines import metric_json
from tracking.metrics import curve_reader

# Children whose curves are drawn with the run's own; more than twenty lines cannot be distinguished.
MAX_CHILDREN = 19


def children_of(run: Run) -> list[Run]:
    """Returns the first MAX_CHILDREN child runs that the run's processes logged, without `preview` and
    `spec`."""
    children = Run.objects.filter(parent=run, deleted_at=None, workspace=run.workspace_id).defer(
        "preview", "spec"
    )
    return list(children.order_by("number")[:MAX_CHILDREN])


def list_curves(runs: Sequence[Run]) -> list[dict[str, object]]:
    """Returns each run with its metrics, as JSON."""
    metrics = curve_reader.metrics_by_run([run.pk for run in runs])
    return [{**run_json(run), "metrics": [metric_json(metric) for metric in metrics[run.pk]]} for run in runs]


def run_json(run: Run) -> dict[str, object]:
    return {
        "run": run.pk,
        "number": run.number,
        "name": run.display_name or str(run),
        "state": run.state,
        "is_live": run.state not in FINAL,
    }
