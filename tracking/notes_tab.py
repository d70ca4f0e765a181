"""The Notes tab of a run's page: the run's note, shown to all and written by contributors."""

from __future__ import annotations

import hashlib
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from jobs import tags
from jobs.models import Run, RunTag
from jobs.views.run_lookup import run_numbered
from jobs.views.tabs import Tab
from tracking.notes import MAX_LENGTH, TAG, render
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role

# Session key of a text that could not be saved.
UNSAVED_KEY = "note-typed"


def note_of(run: Run) -> str:
    return RunTag.objects.filter(run=run, key=TAG).values_list("value", flat=True).first() or ""


def context(run: Run, _: int, request: HttpRequest) -> dict[str, Any]:
    note = note_of(run)
    text = request.session.pop(f"{UNSAVED_KEY}-{run.pk}", None)
    return {
        "note": render(note) if note else "",
        "is_editing": "edit" in request.GET,
        "seen": _digest(note),
        "typed": note if text is None else text,
        "longest": MAX_LENGTH,
    }


@require_POST
@needs(Role.CONTRIBUTOR)
def save(request: WorkspaceRequest, number: int) -> HttpResponse:
    run = run_numbered(request.principal, number)
    # Browsers send the line breaks of a text area as CRLF.
    text = request.POST.get("note", "").replace("\r\n", "\n").strip()
    error = _save_error(run, text, request.POST.get("seen", ""))
    page = redirect("run-tab", number, "notes")
    if error:
        # A text that is too long is returned to its author as well, but a session must stay small.
        request.session[f"{UNSAVED_KEY}-{run.pk}"] = text[: 2 * MAX_LENGTH]
        messages.error(request, error)
        page["Location"] += "?edit=1"
    elif text:
        tags.set_tags(run, {TAG: text})
    else:
        tags.delete_tags(run, [TAG])
    return page


def _save_error(run: Run, text: str, version: str) -> str:
    if len(text) > MAX_LENGTH:
        return f"The note is too long: shorten it to {MAX_LENGTH:,} characters. It has {len(text):,}."
    if "\0" in text:
        return "The note has characters that cannot be stored; remove them."
    # The form contains the digest of the note that it was opened with, so that nobody overwrites a newer one
    # unseen.
    if version != _digest(note_of(run)):
        return (
            "The note was changed since you opened it. Yours is below; the stored one is above. "
            "Save to replace it."
        )
    return ""


def _digest(note: str) -> str:
    return hashlib.sha256(note.encode()).hexdigest()[:16]


TAB = Tab("Notes", context, ("css/artifacts.css",), stands=True, is_detail=True)
