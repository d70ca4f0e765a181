"""The Metrics tab of a run's page."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from jobs.models import Run
from jobs.states import FINAL
from jobs.views.tabs import Tab
from tracking.curves.curve_list import children_of, list_curves
from tracking.models import Metric
from tracking.panels.layout_store import page_panels
from tracking.tensorboard.pages import page_url


def context(run: Run, _: int, __: HttpRequest) -> dict[str, Any]:
    """Returns the template context. Curves contain all attempts, since a retry continues them."""
    address = f"/api/v1/runs/{run.pk}/metrics/"
    return {
        "curves": {"runs": list_curves([run, *children_of(run)])},
        "listing": f"{address}?children=1",
        "series": f"{address}series/?children=1",
        "csv": f"/api/v1/runs/{run.pk}/metrics.csv",
        "compare_url": f"{reverse('compare')}?runs={run.number}",
        "panels": page_panels(run.experiment),
        "marks_events": True,
        "tensorboard_url": page_url(run),
    }


def has_metrics(run: Run) -> bool:
    """Returns whether the tab is visible: it has content, or the run may still log some."""
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
    shows=has_metrics,
)
