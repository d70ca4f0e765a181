"""The page of a version: its origin, files, aliases, tags and stage."""

from __future__ import annotations

import re

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from registry import deletion, model_metadata, stages
from registry.certificates import facts
from registry.certificates.issuance import manifest_of, origin_of
from registry.errors import RegistryError
from registry.lineage import drawn
from registry.lookup import versions_of
from registry.models import ModelVersion
from registry.scanning.verdict_names import CLEAN, CONTAINS_CODE, DANGEROUS, NOT_SCANNED, ORDER
from registry.scanning.verdicts import entry, verdict
from registry.views.models import sentence
from tracking import notes
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role

MAX_FILES = 500
WARNINGS = {
    DANGEROUS: "loading this can run any program.",
    NOT_SCANNED: "the scanner has not scanned this.",
    CONTAINS_CODE: "this contains code, which runs when the model is loaded or used.",
}
TAG = re.compile(r"(?P<key>[^=]+)=(?P<value>.*)", re.DOTALL)


@require_safe
@needs(Role.VIEWER)
def version(request: WorkspaceRequest, name: str, number: int) -> HttpResponse:
    row = _version(request, name, number)
    manifest = manifest_of(row)
    context = {
        "model": row.model,
        "version": row,
        "aliases": row.aliases.order_by("name"),
        "manifest": manifest,
        "lineage": drawn(manifest["origin"] if manifest else facts.plain_object(origin_of(row))),
        "verdict": verdict(row),
        "files": _files(row),
        "file_count": len(row.all_files),
        "referenced_count": row.referenced_files.count(),
        "flagged": _flagged(row),
        "description": notes.render(row.description),
        "tags": sorted(
            (key, value) for key, value in row.tags.items() if not key.startswith(model_metadata.OURS)
        ),
        "stages": list(stages.STAGES.values()),
        "derived": row.derived.select_related("model").order_by("-pk"),
        "may_write": request.principal.may(Role.CONTRIBUTOR),
        "may_delete": request.principal.may(Role.OWNER),
        "address": request.build_absolute_uri("/").rstrip("/"),
    }
    return render(request, "registry/version.html", context)


@require_POST
@needs(Role.CONTRIBUTOR)
def change(request: WorkspaceRequest, name: str, number: int) -> HttpResponse:
    """Sets whichever is given: a description, a stage, a tag; and deletes the tag in `remove_tag`."""
    version, form = _version(request, name, number), request.POST
    try:
        # All or nothing, which the message of a refusal says.
        with transaction.atomic():
            if "description" in form:
                model_metadata.describe(version, form["description"])
            if "stage" in form:
                is_owner = request.principal.may(Role.OWNER)
                stages.move(version, form["stage"], request.principal.user, is_owner=is_owner)
            if "tag" in form:
                model_metadata.set_tag(version, *_tag(form["tag"]))
            if "remove_tag" in form:
                model_metadata.delete_tag(version, form["remove_tag"])
    except RegistryError as error:
        messages.error(request, f"Nothing was changed: {sentence(error)}")
    except PermissionDenied as error:
        messages.error(request, str(error))
    return redirect("model-version", name, number)


@require_POST
@needs(Role.OWNER)
def delete(request: WorkspaceRequest, name: str, number: int) -> HttpResponse:
    deletion.delete_version(_version(request, name, number), request.principal.user)
    messages.success(request, f"Deleted {name} version {number}.")
    return redirect("model", name)


def _version(request: WorkspaceRequest, name: str, number: int) -> ModelVersion:
    versions = versions_of(request.principal.workspace).select_related(
        "created_by", "parent__model", "run__experiment"
    )
    row = versions.filter(model__name=name, number=number).first()
    if row is None:
        raise Http404
    return row


def _files(version: ModelVersion) -> list[dict[str, object]]:
    """Returns at most MAX_FILES files for the page; those that are not clean are chosen first."""
    scan = version.scan or {}
    flagged = [path for path, item in scan.items() if item["verdict"] != CLEAN]
    flagged.sort(key=lambda path: -ORDER.index(scan[path]["verdict"]))
    first = {path: position for position, path in enumerate(flagged)}
    files = sorted(version.all_files, key=lambda file: first.get(file.path, len(first)))[:MAX_FILES]
    return [
        {
            "path": file.path,
            "size_bytes": file.size_bytes,
            "sha256": file.sha256,
            **entry(version, file.path),
        }
        for file in sorted(files, key=lambda file: file.path)
    ]


def _flagged(version: ModelVersion) -> str:
    """Returns the warning to confirm before a download, or "" if none is needed."""
    level = verdict(version)
    if level not in WARNINGS:
        return ""
    paths = sorted(path for path, item in (version.scan or {}).items() if item["verdict"] == level)
    return f"{', '.join(paths[:3])}{' …' if len(paths) > 3 else ''}: {WARNINGS[level]}"


def _tag(text: str) -> tuple[str, str]:
    match = TAG.fullmatch(text.strip())
    if match is None:
        raise RegistryError("tag", "write it as name=value, such as dataset=digits")
    return match["key"].strip(), match["value"].strip()
