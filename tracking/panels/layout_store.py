"""Stores the arranged panels of experiments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import transaction

from jobs.errors import Conflict
from jobs.models import Experiment
from tracking.models import PanelLayout
from tracking.panels.metric_panel import MetricPanel, panels_json
from workspaces.models import User


def page_panels(experiment: Experiment) -> dict[str, Any]:
    """Returns what a page with charts needs (templates/tracking/_panels.html)."""
    layout = layout_json(experiment)
    return {
        "address": f"/api/v1/experiments/{experiment.pk}/panels/",
        "layout": {name: layout[name] for name in ("name", "panels", "revision")},
    }


def layout_json(experiment: Experiment) -> dict[str, Any]:
    """Returns the layout as JSON. Without one, `panels` is empty and `revision` is 0."""
    layout = PanelLayout.objects.select_related("changed_by").filter(experiment=experiment).first()
    return {
        "experiment": experiment.pk,
        "name": experiment.name,
        "panels": layout.panels if layout else [],
        "revision": layout.revision if layout else 0,
        "changed_at": layout.changed_at if layout else None,
        "changed_by": layout.changed_by.get_username() if layout and layout.changed_by else "",
    }


@transaction.atomic
def save_panels(experiment: Experiment, panels: Iterable[MetricPanel], revision: int, who: User) -> None:
    """Replaces the panels of the experiment. Raises Conflict unless `revision` is the stored one."""
    layout = _locked(experiment)
    if layout.revision != revision:
        raise Conflict(
            "Somebody has changed these panels since you opened them. Load them again and repeat your change."
        )
    _store(layout, panels_json(panels), who)


@transaction.atomic
def reset(experiment: Experiment, who: User) -> None:
    """Goes back to the automatic layout. The revision goes on, so that a change that is based on the removed
    panels is refused."""
    _store(_locked(experiment), [], who)


def _locked(experiment: Experiment) -> PanelLayout:
    # The experiment's row always exists, so it serves as the lock also before there is a layout.
    Experiment.objects.select_for_update().get(pk=experiment.pk)
    return PanelLayout.objects.filter(experiment=experiment).first() or PanelLayout(experiment=experiment)


def _store(layout: PanelLayout, panels: list[dict[str, object]], who: User) -> None:
    layout.panels = panels
    layout.revision += 1
    layout.changed_by = who
    layout.save()
