"""The page of a version: where it comes from, what is in it, what it is called."""

from __future__ import annotations

import re

from django.contrib import messages
from django.core.exceptions import PermissionDenied
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

MOST_FILES = 500
WARNINGS = {
    DANGEROUS: "loading this can run any program.",
    NOT_SCANNED: "the scanner has not looked at this.",
    CONTAINS_CODE: "this brings code, which runs when the model is loaded or used.",
}
TAG = re.compile(r"(?P<key>[^=]+)=(?P<value>.*)", re.DOTALL)


@require_safe
@needs(Role.VIEWER)
def version(request: WorkspaceRequest, name: str, number: int) -> HttpResponse:
    found = _version(request, name, number)
    manifest = manifest_of(found)
    context = {
        "model": found.model,
        "version": found,
        "aliases": found.aliases.order_by("name"),
        "manifest": manifest,
        "lineage": drawn(manifest["origin"] if manifest else facts.plain(origin_of(found))),
        "verdict": verdict(found),
        "files": _files(found),
        "file_count": found.files.count(),
        "flagged": _flagged(found),
        "description": notes.render(found.description),
        "tags": sorted(
            (key, value) for key, value in found.tags.items() if not key.startswith(model_metadata.OURS)
        ),
        "stages": list(stages.STAGES.values()),
        "derived": found.derived.select_related("model").order_by("-pk"),
        "may_write": request.principal.may(Role.CONTRIBUTOR),
        "may_delete": request.principal.may(Role.OWNER),
        "address": request.build_absolute_uri("/").rstrip("/"),
    }
    return render(request, "registry/version.html", context)


@require_POST
@needs(Role.CONTRIBUTOR)
def change(request: WorkspaceRequest, name: str, number: int) -> HttpResponse:
    """Whichever of description, stage, a tag to set and a tag to remove is given."""
    found, told = _version(request, name, number), request.POST
    try:
        if "description" in told:
            model_metadata.describe(found, told["description"])
        if "stage" in told:
            stages.move(
                found, told["stage"], request.principal.user, is_owner=request.principal.may(Role.OWNER)
            )
        if "tag" in told:
            model_metadata.set_tag(found, *_tag(told["tag"]))
        if "remove_tag" in told:
            model_metadata.delete_tag(found, told["remove_tag"])
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
    found = versions.filter(model__name=name, number=number).first()
    if found is None:
        raise Http404
    return found


def _files(found: ModelVersion) -> list[dict[str, object]]:
    """Of tens of thousands no page can be made: those that the scanner says something of come first."""
    scan = found.scan or {}
    flagged = [path for path, item in scan.items() if item["verdict"] != CLEAN]
    flagged.sort(key=lambda path: -ORDER.index(scan[path]["verdict"]))
    shown = [*found.files.filter(path__in=flagged[:MOST_FILES])]
    shown += found.files.exclude(pk__in=[file.pk for file in shown]).order_by("path")[
        : MOST_FILES - len(shown)
    ]
    return [
        {
            "path": file.path,
            "size_bytes": file.size_bytes,
            "sha256": file.sha256,
            **entry(found, file.path),
        }
        for file in sorted(shown, key=lambda file: file.path)
    ]


def _flagged(found: ModelVersion) -> str:
    """Return what is asked before a download, or an empty text where nothing needs to be said."""
    level = verdict(found)
    if level not in WARNINGS:
        return ""
    paths = sorted(path for path, item in (found.scan or {}).items() if item["verdict"] == level)
    return f"{', '.join(paths[:3])}{' …' if len(paths) > 3 else ''}: {WARNINGS[level]}"


def _tag(text: str) -> tuple[str, str]:
    told = TAG.fullmatch(text.strip())
    if told is None:
        raise RegistryError("tag", "write it as name=value, such as dataset=digits")
    return told["key"].strip(), told["value"].strip()
