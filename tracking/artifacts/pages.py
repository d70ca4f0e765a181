"""The Outputs tab of a run's page: its files one folder at a time, and what one of them holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote, urlencode

from django.db.models import Count, Sum
from django.http import Http404, HttpRequest
from django.urls import NoReverseMatch, reverse

from jobs.models import Artifact, Run
from jobs.states import FINAL
from jobs.views.tabs import Tab
from tracking.artifacts import paths
from tracking.artifacts.file_owners import ModelFiles, Place, Row, RunFiles
from tracking.artifacts.folders import Folder, listing
from tracking.artifacts.previews.file_preview import Preview, preview
from tracking.mlflow.protocol.errors import MlflowError
from tracking.models import LoggedModel

AT_ONCE = 500
"""Rows of one page of a folder."""
MOST_RUNS = 100


@dataclass(frozen=True)
class Where:
    """What is looked at: a place, a folder of it, and perhaps a file. `kept`: what of the address goes on in
    every link."""

    place: Place
    folder: str
    file: str
    start: int
    tab_url: str
    kept: Mapping[str, str] = field(default_factory=dict)

    def url(self, **more: str | int) -> str:
        query = urlencode({name: value for name, value in {**self.kept, **more}.items() if value})
        return f"{self.tab_url}?{query}" if query else self.tab_url

    def bytes_url(self, kind: str, path: str) -> str:
        attempt = self.kept.get("attempt")
        address = f"{self.place.root}/{path}" if path else self.place.root
        return f"/api/v1/artifacts/{kind}/{quote(address)}" + (f"?attempt={attempt}" if attempt else "")


@dataclass(frozen=True)
class Shown:
    """A row of the table: a folder (`files` in it) or a file (`sha256`). `attempt`: where it is not the last
    one's."""

    name: str
    path: str
    url: str
    size_bytes: int
    saved_at: datetime
    files: int | None = None
    sha256: str = ""
    download_url: str = ""
    attempt: int | None = None


def context(run: Run, attempt: int, request: HttpRequest) -> dict[str, Any]:
    """Raises Http404 for a model or file that is not there."""
    where = _where(run, attempt, request)
    found = listing(where.place.rows, where.folder)
    entries = [
        *(_folder(where, item) for item in found.folders),
        *(_file(where, item, run) for item in found.files),
    ]
    is_root = not where.folder and isinstance(where.place, RunFiles)
    return {
        "where": where,
        "crumbs": _crumbs(where),
        "entries": entries[where.start : where.start + AT_ONCE],
        "count": found.count,
        "total_bytes": found.size_bytes,
        "zip_url": where.bytes_url("zip", where.folder),
        "later_url": _later(where, len(entries)),
        "chosen": _chosen(where, run) if where.file else None,
        "models": _models(run, where) if is_root else (),
        "children": _children(run) if is_root else (),
        "register_url": _register_url() if isinstance(where.place, RunFiles) else "",
        "is_final": run.state in FINAL,
    }


def _where(run: Run, attempt: int, request: HttpRequest) -> Where:
    asked = request.GET
    model = asked.get("model", "")
    tab_url = reverse("run-tab", args=[run.number, "outputs"])
    kept = {"model": model} if model else {}
    if attempt != run.attempt:
        kept["attempt"] = str(attempt)
    try:
        folder = paths.folder(asked.get("path", ""))
        file = paths.checked(asked["file"]) if asked.get("file") else ""
    except MlflowError as error:
        raise Http404(error.message) from error
    start = asked.get("from", "")
    if file and "path" not in asked:
        folder = _parent(file)
    place: Place = ModelFiles(_model(run, model)) if model else RunFiles(run, attempt)
    return Where(
        place, folder, file, int(start) if start.isdecimal() and len(start) < 8 else 0, tab_url, kept
    )


def _model(run: Run, model_id: str) -> LoggedModel:
    model = LoggedModel.objects.filter(pk=model_id, run=run, deleted_at=None).first()
    if model is None:
        raise Http404
    return model


def _crumbs(where: Where) -> list[tuple[str, str]]:
    """Word and address, from the root down to the folder."""
    crumbs = [("Outputs", Where(where.place, "", "", 0, where.tab_url, _without_model(where.kept)).url())]
    if isinstance(where.place, ModelFiles):
        crumbs.append((f"model {where.place.model.name}", where.url()))
    parts = where.folder.split("/") if where.folder else []
    crumbs += [(part, where.url(path="/".join(parts[: count + 1]))) for count, part in enumerate(parts)]
    return crumbs


def _without_model(kept: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in kept.items() if name != "model"}


def _folder(where: Where, item: Folder) -> Shown:
    return Shown(
        item.name,
        item.path,
        where.url(path=item.path),
        item.size_bytes,
        item.saved_at,
        files=item.files,
        download_url=where.bytes_url("zip", item.path),
    )


def _file(where: Where, item: Row, run: Run) -> Shown:
    is_older = (
        isinstance(item, Artifact) and item.attempt not in (run.attempt, 0) and "attempt" not in where.kept
    )
    return Shown(
        PurePosixPath(item.path).name,
        item.path,
        where.url(file=item.path, **({"from": where.start} if where.start else {})),
        item.size_bytes,
        item.created_at,
        sha256=item.sha256,
        download_url=where.bytes_url("files", item.path),
        attempt=item.attempt if is_older and isinstance(item, Artifact) else None,
    )


def _chosen(where: Where, run: Run) -> dict[str, Any]:
    row = where.place.rows.filter(path=where.file).first()
    if row is None:
        raise Http404
    seen: Preview = preview(row)
    return {
        "file": _file(where, row, run),
        "preview": seen,
        "image_url": where.bytes_url("images", row.path) if seen.kind == "image" else "",
        "figure_url": where.bytes_url("figures", row.path) if seen.kind == "figure" else "",
        "close_url": where.url(path=where.folder),
    }


def _models(run: Run, where: Where) -> list[dict[str, Any]]:
    """The models that the run has logged: their files lie apart from its own."""
    found = LoggedModel.objects.filter(run=run, deleted_at=None).order_by("created_at")
    counted = found.annotate(count=Count("files"), size_bytes=Sum("files__size_bytes"))
    return [{"model": model, "url": where.url(model=model.pk)} for model in counted[:MOST_RUNS]]


def _children(run: Run) -> list[Run]:
    """What its processes logged as runs of their own: with how many files."""
    children = Run.objects.kept().filter(parent=run).order_by("number")
    return list(
        children.annotate(count=Count("artifacts"), size_bytes=Sum("artifacts__size_bytes"))[:MOST_RUNS]
    )


def _later(where: Where, count: int) -> str:
    start = where.start + AT_ONCE
    return where.url(path=where.folder, **{"from": start}) if start < count else ""


def _register_url() -> str:
    try:
        return reverse("register-form")
    except NoReverseMatch:
        return ""


def _parent(path: str) -> str:
    parent = str(PurePosixPath(path).parent)
    return "" if parent == "." else parent


TAB = Tab("Outputs", context, ("css/artifacts.css",), ("js/artifacts/browser.js",), stands=True)
