"""The page of the audit trail, for operators and owners, and its download as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from workspaces.access import WorkspaceRequest, needs
from workspaces.audit_trail import entries
from workspaces.audit_trail.entries import KINDS, AuditFilter, FilterError
from workspaces.models import AuditEvent
from workspaces.spreadsheets import plain_text
from workspaces.states import Role

PAGE_SIZE = 100
# About 20 MB of text.
MAX_CSV_EVENTS = 100_000
COLUMNS = ("at", "actor", "workspace", "verb", "subject", "detail", "position", "seal")


@dataclass(frozen=True)
class AuditRow:
    event: AuditEvent
    action: str
    detail: str


@require_GET
@needs(Role.VIEWER)
def audit_page(request: WorkspaceRequest) -> HttpResponse:
    events = entries.visible_events(request.principal)
    try:
        criteria, problem = entries.read_filter(request.GET), None
    except FilterError as error:
        criteria, problem = AuditFilter(), error
    page = Paginator(entries.filter_events(events, criteria), PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "page": page,
        "rows": [
            AuditRow(event, entries.action_text(event.verb), entries.detail_text(event.detail))
            for event in page
        ],
        "criteria": criteria,
        "problem": problem,
        "kinds": KINDS.items(),
        "shows_workspaces": request.principal.user.is_operator,
    }
    return render(request, "workspaces/audit.html", context, status=400 if problem else 200)


@require_GET
@needs(Role.VIEWER)
def audit_csv(request: WorkspaceRequest) -> HttpResponse:
    """Everything that the filter matches, not only a page of it."""
    events = entries.visible_events(request.principal)
    try:
        matching = entries.filter_events(events, entries.read_filter(request.GET))
        if matching[MAX_CSV_EVENTS : MAX_CSV_EVENTS + 1].exists():
            raise FilterError("from", f"more than {MAX_CSV_EVENTS:,} events match; choose fewer days")
    except FilterError as error:
        return HttpResponse(f"{error.field}: {error.message}\n", content_type="text/plain", status=400)
    return HttpResponse(
        _csv_text(matching.iterator(500)),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="audit.csv"'},
    )


def _csv_text(events: Iterable[AuditEvent]) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for event in events:
        texts = (
            event.actor,
            event.workspace.slug if event.workspace else "",
            event.verb,
            event.subject,
            entries.detail_text(event.detail),
        )
        writer.writerow(
            [event.at.isoformat(), *map(plain_text, texts), event.position or "", plain_text(event.seal)]
        )
    return out.getvalue()
