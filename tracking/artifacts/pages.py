"""The Outputs tab of a run's page: one folder of its files, and a preview of one file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from urllib.parse import quote, urlencode

from django.db.models import Count, Sum
from django.http import Http404, HttpRequest
from django.urls import reverse

from jobs.lineage.output_versions import list_versions
from jobs.models import Artifact, Run, StoredOutput
from jobs.states import FINAL
from jobs.stored_outputs.download import object_of
from jobs.views.tabs import Tab
from tracking.artifacts import paths
from tracking.artifacts.file_owners import FileOwner, ListedFile, ModelFiles, RunFiles
from tracking.artifacts.folders import SubfolderTotals, list_folder
from tracking.artifacts.previews.file_preview import FilePreview, preview_file
from tracking.mlflow.protocol.errors import MlflowError
from tracking.models import LoggedModel
from tracking.tensorboard.pages import page_url

# Rows on one page of a folder.
PAGE_SIZE = 500
MAX_RUNS = 100


@dataclass(frozen=True)
class Location:
    """The owner, folder and file that the tab shows. `link_params` are query parameters that every link
    contains."""

    place: FileOwner
    folder: str
    file: str
    offset: int
    tab_url: str
    link_params: Mapping[str, str] = field(default_factory=dict)

    def url(self, **more: str | int) -> str:
        query = urlencode({name: value for name, value in {**self.link_params, **more}.items() if value})
        return f"{self.tab_url}?{query}" if query else self.tab_url

    def bytes_url(self, kind: str, path: str) -> str:
        attempt = self.link_params.get("attempt")
        address = f"{self.place.root}/{path}" if path else self.place.root
        return f"/api/v1/artifacts/{kind}/{quote(address)}" + (f"?attempt={attempt}" if attempt else "")


@dataclass(frozen=True)
class FolderEntry:
    """A row of the table: a folder (with the number of its `files`, and of those that are `stored` in a
    datastore) or a file (with `sha256`). `attempt` is set for a file of an earlier attempt. `place`: where
    the file lies if that is in a datastore; `refusal`: why the hub cannot read it there, as a sentence."""

    name: str
    path: str
    url: str
    size_bytes: int
    saved_at: datetime
    files: int | None = None
    sha256: str = ""
    download_url: str = ""
    attempt: int | None = None
    place: str = ""
    refusal: str = ""
    stored: int = 0


def context(run: Run, attempt: int, request: HttpRequest) -> dict[str, object]:
    """Returns the template context. Raises Http404 for an unknown model or file."""
    where = _location(run, attempt, request)
    contents = list_folder(where.place, where.folder)
    entries = [
        *(_folder(where, item) for item in contents.folders),
        *(_file(where, item, run) for item in contents.files),
    ]
    is_root = not where.folder and isinstance(where.place, RunFiles)
    return {
        "where": where,
        "crumbs": _crumbs(where),
        "entries": entries[where.offset : where.offset + PAGE_SIZE],
        "count": contents.count,
        "total_bytes": contents.size_bytes,
        "stored_count": contents.stored_count,
        "zip_url": where.bytes_url("zip", where.folder),
        "later_url": _next_url(where, len(entries)),
        "chosen": _selected_file(where, run) if where.file else None,
        "models": _models(run, where) if is_root else (),
        "children": _children(run) if is_root else (),
        "origins": list_versions(run)[:MAX_RUNS] if is_root else (),
        "register_url": register_url() if isinstance(where.place, RunFiles) else "",
        "dataset_url": _dataset_url(run, where),
        "is_final": run.state in FINAL,
        "tensorboard_url": page_url(run) if is_root else "",
    }


def _location(run: Run, attempt: int, request: HttpRequest) -> Location:
    params = request.GET
    model = params.get("model", "")
    tab_url = reverse("run-tab", args=[run.number, "outputs"])
    link_params = {"model": model} if model else {}
    if attempt != run.attempt:
        link_params["attempt"] = str(attempt)
    try:
        folder = paths.folder_path(params.get("path", ""))
        file = paths.check_path(params["file"]) if params.get("file") else ""
    except MlflowError as error:
        raise Http404(error.message) from error
    start = params.get("from", "")
    # A link to a file need not name its folder.
    if file and "path" not in params:
        folder = _parent(file)
    place: FileOwner = ModelFiles(_model(run, model)) if model else RunFiles(run, attempt)
    return Location(
        place, folder, file, int(start) if start.isdecimal() and len(start) < 8 else 0, tab_url, link_params
    )


def _model(run: Run, model_id: str) -> LoggedModel:
    model = LoggedModel.objects.filter(pk=model_id, run=run, deleted_at=None).first()
    if model is None:
        raise Http404
    return model


def _crumbs(where: Location) -> list[tuple[str, str]]:
    """Returns (label, URL) pairs from the root to the folder."""
    crumbs = [
        ("Outputs", Location(where.place, "", "", 0, where.tab_url, _without_model(where.link_params)).url())
    ]
    if isinstance(where.place, ModelFiles):
        crumbs.append((f"model {where.place.model.name}", where.url()))
    parts = where.folder.split("/") if where.folder else []
    crumbs += [(part, where.url(path="/".join(parts[: count + 1]))) for count, part in enumerate(parts)]
    return crumbs


def _without_model(link_params: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in link_params.items() if name != "model"}


def _folder(where: Location, item: SubfolderTotals) -> FolderEntry:
    return FolderEntry(
        item.name,
        item.path,
        where.url(path=item.path),
        item.size_bytes,
        item.saved_at,
        files=item.files,
        stored=item.stored,
        download_url=where.bytes_url("zip", item.path),
    )


def _file(where: Location, item: ListedFile, run: Run) -> FolderEntry:
    stored = item if isinstance(item, StoredOutput) else None
    attempt = stored.folder.attempt if stored else item.attempt if isinstance(item, Artifact) else 0
    is_older = attempt not in (run.attempt, 0) and "attempt" not in where.link_params
    return FolderEntry(
        PurePosixPath(item.path).name,
        item.path,
        where.url(file=item.path, **({"from": where.offset} if where.offset else {})),
        item.size_bytes,
        item.created_at,
        sha256=item.sha256,
        download_url=where.bytes_url("files", item.path),
        attempt=attempt if is_older else None,
        place=stored.place if stored else "",
        refusal=object_of(stored).refusal if stored else "",
    )


def _selected_file(where: Location, run: Run) -> dict[str, object]:
    row = where.place.rows.filter(path=where.file).first()
    if row is None:
        stored = where.place.stored_rows.filter(path=where.file).first()
        if stored is None:
            raise Http404
        return {"file": _file(where, stored, run), "close_url": where.url(path=where.folder)}
    file_preview: FilePreview = preview_file(row)
    return {
        "file": _file(where, row, run),
        "preview": file_preview,
        "image_url": where.bytes_url("images", row.path) if file_preview.kind == "image" else "",
        "figure_url": where.bytes_url("figures", row.path) if file_preview.kind == "figure" else "",
        "close_url": where.url(path=where.folder),
    }


def _models(run: Run, where: Location) -> list[dict[str, object]]:
    """Returns the run's logged models, whose files are separate from its own."""
    models = LoggedModel.objects.filter(run=run, deleted_at=None).order_by("created_at")
    annotated = models.annotate(count=Count("files"), size_bytes=Sum("files__size_bytes"))
    return [{"model": model, "url": where.url(model=model.pk)} for model in annotated[:MAX_RUNS]]


def _children(run: Run) -> list[Run]:
    """Returns the child runs that its processes logged, with the number and size of their files."""
    children = Run.objects.not_deleted().filter(parent=run).order_by("number")
    return list(
        children.annotate(count=Count("artifacts"), size_bytes=Sum("artifacts__size_bytes"))[:MAX_RUNS]
    )


def _next_url(where: Location, count: int) -> str:
    start = where.offset + PAGE_SIZE
    return where.url(path=where.folder, **{"from": start}) if start < count else ""


def register_url() -> str:
    """Returns the address of the registry's form."""
    return reverse("register")


def _dataset_url(run: Run, where: Location) -> str:
    """Returns the address of the form that makes a dataset of the folder, "" while the run may add files."""
    if run.state not in FINAL or not isinstance(where.place, RunFiles):
        return ""
    params = {"run": run.number, "path": where.folder, "attempt": where.link_params.get("attempt", "")}
    return f"{reverse('output-create')}?{urlencode({name: value for name, value in params.items() if value})}"


def _parent(path: str) -> str:
    parent = str(PurePosixPath(path).parent)
    return "" if parent == "." else parent


TAB = Tab("Outputs", context, ("css/artifacts.css",), ("js/artifacts/browser.js",), stands=True)
