"""The page of alerts: firing ones first, then those that have cleared."""

from __future__ import annotations

from dataclasses import dataclass

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.cache import patch_cache_control, patch_vary_headers

from clusters.alerts import alert_store, presenters
from clusters.alerts.daily_counts import daily_counts
from clusters.models import Alert
from trainhub_launch.severity import SEVERITIES
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role

PAGE_SIZE = 50


@dataclass(frozen=True)
class AlertFilter:
    state: str = ""
    kind: str = ""
    severity: str = ""
    node: str = ""
    run: str = ""

    @classmethod
    def read(cls, query: QueryDict) -> AlertFilter:
        values = {
            name: query.get(name, "").replace("\x00", "").strip()[:100]
            for name in ("kind", "severity", "node", "run")
        }
        state = query.get("state", "")
        return cls(
            state=state if state in presenters.VISIBLE_STATES else "",
            kind=values["kind"] if values["kind"] in presenters.KINDS else "",
            severity=values["severity"] if values["severity"] in SEVERITIES else "",
            node=values["node"],
            run=values["run"],
        )

    def apply(self, alerts: QuerySet[Alert]) -> QuerySet[Alert]:
        conditions = {
            "state": self.state,
            "kind": self.kind,
            "severity": self.severity,
            "node__name": self.node,
            "holder": self.run,
        }
        return alerts.filter(**{name: value for name, value in conditions.items() if value})

    def __bool__(self) -> bool:
        return self != AlertFilter()


@needs(Role.VIEWER)
def alerts_page(request: WorkspaceRequest) -> HttpResponse:
    workspace = request.principal.workspace
    filters = AlertFilter.read(request.GET)
    matching = filters.apply(presenters.visible(workspace, filters.run))
    firing = presenters.summarize_all(
        matching.filter(state=alert_store.FIRING).order_by(*alert_store.BY_SEVERITY), workspace.pk
    )
    page = Paginator(
        matching.filter(state=alert_store.CLEARED).order_by("-cleared_at", "-pk"), PAGE_SIZE
    ).get_page(request.GET.get("page"))
    context: dict[str, object] = {
        "alerts": firing,
        "page": page,
        "days": daily_counts(matching) if filters.state != alert_store.FIRING else [],
        "history": presenters.summarize_all(page.object_list, workspace.pk),
        "chosen": filters,
        "kinds": presenters.KINDS.items(),
        "severities": SEVERITIES,
    }
    # htmx asks for a whole page when it restores one from the history.
    is_fragment = "HX-Request" in request.headers and "HX-History-Restore-Request" not in request.headers
    response = render(
        request, "clusters/_alert_lists.html" if is_fragment else "clusters/alerts.html", context
    )
    # Page and fragment share an address: without these headers the back button could show the bare fragment.
    patch_vary_headers(response, ["HX-Request"])
    patch_cache_control(response, no_store=True)
    return response


@needs(Role.VIEWER)
def count(request: WorkspaceRequest) -> HttpResponse:
    """Renders the number of firing alerts for the navigation rail of every page."""
    return render(request, "clusters/_alert_count.html")
