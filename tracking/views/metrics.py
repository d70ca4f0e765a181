"""The tab of a run's page that shows what the run logs."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from jobs.models import Run
from jobs.states import FINAL
from jobs.views.tabs import Tab
from tracking.curves.curve_list import children_of, list_curves
from tracking.models import Metric


def context(run: Run, _: int, __: HttpRequest) -> dict[str, Any]:
    """Of all attempts: a curve goes on where a retry goes on."""
    address = f"/api/v1/runs/{run.pk}/metrics/"
    return {
        "curves": {"runs": list_curves([run, *children_of(run)])},
        "listing": f"{address}?children=1",
        "series": f"{address}series/?children=1",
        "csv": f"/api/v1/runs/{run.pk}/metrics.csv",
        "compare_url": f"{reverse('compare')}?runs={run.number}",
    }


def shows(run: Run) -> bool:
    """Once there is something, or while there may come something."""
    return (
        run.state not in FINAL
        or Metric.objects.filter(run=run).exists()
        or Metric.objects.filter(run__parent=run).exists()
    )


TAB = Tab(
    "Metrics",
    context,
    ("css/charts.css", "css/curves.css"),
    ("js/curves/mount.js",),
    stands=True,
    shows=shows,
)
