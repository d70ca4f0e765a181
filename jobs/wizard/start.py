"""The ways to start a draft: empty, from an example, by an upload, from a git repository, or by continuing an
open draft."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable

from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from environments.catalog import environment_names
from jobs.models import Draft
from jobs.sources import examples, git_sources, snapshots
from jobs.wizard import choices, drafts, steps
from jobs.wizard.environment_form import MAX_ENVIRONMENT_LENGTH, read_environment
from jobs.wizard.source_form import REPOSITORY_FIELDS, write_source
from trainhub_launch.errors import SpecError
from trainhub_launch.fields import Fields
from trainhub_launch.spec import SnapshotSource, Source
from trainhub_launch.spec_reader import read_git_source, read_spec
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role

REPOSITORY_LABELS = {"url": "Repository", "ref": "Branch, tag or commit", "path": "Folder"}
# A wrong address is kept for its correction, but not a megabyte of it.
MAX_REPOSITORY_TEXT = 1000
# What stands before a host and is not the name of a secret.
PLAIN_LOGIN = re.compile(r"://(?!([^/@:]*:)?\$\{[^/@}]+\}@)[^/]*@")


@require_GET
@needs(Role.CONTRIBUTOR)
def start(request: WorkspaceRequest) -> HttpResponse:
    who = request.principal
    context = {
        "gallery": choices.gallery(who.workspace),
        "runs": choices.last_runs(who.workspace),
        "drafts": [(draft, _title(draft)) for draft in drafts.open_drafts(who)],
    }
    return render(request, "jobs/wizard/start.html", context)


@require_POST
@needs(Role.CONTRIBUTOR)
def blank(request: WorkspaceRequest) -> HttpResponse:
    return redirect("wizard-step", drafts.start(request.principal).pk, steps.NAMES[0])


@require_POST
@needs(Role.CONTRIBUTOR)
def with_environment(request: WorkspaceRequest) -> HttpResponse:
    """Starts a draft in which the posted `environment` (`name` or `name:version`) is chosen."""
    ref = read_environment(request.POST.get("environment", "")[:MAX_ENVIRONMENT_LENGTH])
    names = environment_names(request.principal.workspace)
    if ref.name not in names:
        messages.error(request, f"Environment: {ref.name!r} is none; choose one of {', '.join(names)}.")
        return redirect("environments")
    draft = drafts.start(request.principal, environment=ref)
    return redirect("wizard-step", draft.pk, steps.NAMES[0])


@require_POST
@needs(Role.CONTRIBUTOR)
def from_example(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Starts a draft of the example at its review step, because an example needs no further input."""
    try:
        example = examples.example(name)
    except SpecError as error:
        raise Http404(error.message) from error
    draft = drafts.start(request.principal, read_spec(example.spec))
    return redirect("wizard-step", draft.pk, steps.REVIEW)


@require_POST
@needs(Role.CONTRIBUTOR)
def upload(request: WorkspaceRequest, draft_id: uuid.UUID | None = None) -> HttpResponse:
    """Makes an uploaded zip the source of the draft, or of a new draft without `draft_id`.

    Responds with JSON to the page's script and with a redirect to a plain form."""
    draft = drafts.find(request.principal, draft_id) if draft_id else None
    file = request.FILES.get("file")
    if not isinstance(file, UploadedFile) or file.file is None:
        return _refused(request, draft, "Choose a zip file or a folder to upload.")
    try:
        snapshot = snapshots.from_zip(file.file, request.principal)
    except SpecError as error:
        return _refused(request, draft, f"The source was not taken: {error.message}.")
    # Created after the zip was accepted, so that a rejected upload leaves no empty draft.
    draft = draft or drafts.start(request.principal)
    _put_source(draft, SnapshotSource(snapshot.sha256), snapshot.paths)
    return _went_well(request, draft)


@require_POST
@needs(Role.CONTRIBUTOR)
def from_repository(request: WorkspaceRequest, draft_id: uuid.UUID | None = None) -> HttpResponse:
    """Makes a folder of a git repository, fetched now, the source of the draft, or of a new draft. What was
    typed is kept in the draft, also if it is refused."""
    draft = drafts.find(request.principal, draft_id) if draft_id else None
    typed = {name: request.POST.get(name, "").strip() for name in REPOSITORY_FIELDS}
    try:
        address = read_git_source(Fields({REPOSITORY_FIELDS[name]: text for name, text in typed.items()}))
        source = git_sources.fetch(address, request.principal)
    except SpecError as error:
        draft = draft or drafts.start(request.principal)
        drafts.put(draft, "source", **{name: _kept(text) for name, text in typed.items()})
        name = error.field.removeprefix("source.")
        return _refused(request, draft, f"{REPOSITORY_LABELS.get(name, 'Repository')}: {error.message}.")
    draft = draft or drafts.start(request.principal)
    commit = git_sources.fetched(source, request.principal.workspace)
    _put_source(draft, source, commit.snapshot.paths if commit else (), **typed)
    return _went_well(request, draft)


def _kept(text: str) -> str:
    """Returns what a draft keeps of a refused field: no login that somebody has typed in plain text."""
    return PLAIN_LOGIN.sub("://", text.replace("\x00", ""))[:MAX_REPOSITORY_TEXT]


def _put_source(draft: Draft, source: Source, paths: Iterable[str], **changed: str) -> None:
    changed["source"] = write_source(source)
    # A script that the user has chosen is not replaced, even if the new source does not contain it.
    if not draft.steps.get("source", {}).get("script", [""])[0]:
        changed["script"] = choices.likely_script(paths)
    drafts.put(draft, "source", **changed)


def _went_well(request: WorkspaceRequest, draft: Draft) -> HttpResponse:
    url = reverse("wizard-step", args=(draft.pk, "source"))
    return redirect(url) if request.accepts("text/html") else JsonResponse({"url": url})


def _refused(request: WorkspaceRequest, draft: Draft | None, sentence: str) -> HttpResponse:
    # The page's script accepts JSON only; a form without JavaScript accepts HTML.
    if not request.accepts("text/html"):
        return JsonResponse({"message": sentence}, status=422)
    messages.error(request, sentence)
    return redirect("wizard-step", draft.pk, "source") if draft else redirect("wizard-start")


def _title(draft: Draft) -> str:
    name = draft.steps.get("environment", {}).get("display_name", [""])[0]
    source = draft.steps.get("source", {})
    return (
        name
        or (source.get("script") or [""])[0]
        or (source.get("command") or [""])[0][:60]
        or "Nothing chosen yet"
    )
