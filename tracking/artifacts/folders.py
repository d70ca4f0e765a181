"""Lists one folder: its files, and totals of its subfolders, computed by the database."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

from django.db.models import Count, Max, Sum, Value
from django.db.models.functions import Left, StrIndex, Substr

from jobs.models import StoredOutput
from jobs.outputs import rows_below
from tracking.artifacts.file_owners import FileOwner, ListedFile, ListedRows


@dataclass(frozen=True)
class SubfolderTotals:
    """A subfolder; `files` counts the files at any depth, `stored` those of them in a datastore; `saved_at`
    is the time of the latest."""

    name: str
    path: str
    files: int
    size_bytes: int
    saved_at: datetime
    stored: int = 0

    def with_totals_of(self, other: SubfolderTotals | None) -> SubfolderTotals:
        """Returns the folder with the files of another one of the same path, too."""
        if other is None:
            return self
        return replace(
            self,
            files=self.files + other.files,
            size_bytes=self.size_bytes + other.size_bytes,
            stored=self.stored + other.stored,
            saved_at=max(self.saved_at, other.saved_at),
        )


@dataclass(frozen=True)
class FolderListing:
    """Content of a folder; both lists are sorted by name."""

    folders: list[SubfolderTotals]
    files: list[ListedFile]

    @property
    def size_bytes(self) -> int:
        return sum(item.size_bytes for item in (*self.folders, *self.files))

    @property
    def stored_count(self) -> int:
        """How many of the files lie in a datastore."""
        return sum(folder.stored for folder in self.folders) + sum(
            isinstance(file, StoredOutput) for file in self.files
        )

    @property
    def count(self) -> int:
        return sum(folder.files for folder in self.folders) + len(self.files)


def list_folder(place: FileOwner, path: str) -> FolderListing:
    """Returns the content of the folder `path` ("": the root); empty for the path of a file."""
    folders: dict[str, SubfolderTotals] = {}
    files: list[ListedFile] = []
    for rows in (cast("ListedRows", place.rows), cast("ListedRows", place.stored_rows)):
        files += _files(rows, path)
        for folder in _subfolders(rows, path):
            totals = replace(folder, stored=folder.files) if rows.model is StoredOutput else folder
            folders[folder.name] = totals.with_totals_of(folders.get(folder.name))
    return FolderListing(
        sorted(folders.values(), key=lambda folder: folder.name), sorted(files, key=lambda row: row.path)
    )


def _inside(rows: ListedRows, path: str) -> ListedRows:
    """Returns the rows below the folder, with the position of the first slash behind it as `slash`."""
    start = len(path) + 1 if path else 0
    # SQL counts characters from 1.
    inside = rows_below(rows, path).annotate(rest=Substr("path", start + 1))
    return cast("ListedRows", inside.annotate(slash=StrIndex("rest", Value("/"))))


def _files(rows: ListedRows, path: str) -> ListedRows:
    return _inside(rows, path).filter(slash=0).order_by()


def _subfolders(rows: ListedRows, path: str) -> list[SubfolderTotals]:
    grouped = (
        _inside(rows, path)
        .filter(slash__gt=0)
        .annotate(name=Left("rest", StrIndex("rest", Value("/"))))
        .order_by()
        .values("name")
        .annotate(files=Count("pk"), size_bytes=Sum("size_bytes"), saved_at=Max("created_at"))
    )
    return [_folder(path, row) for row in grouped]


def _folder(parent: str, row: dict[str, Any]) -> SubfolderTotals:
    # The slash at which the database cuts is part of the name.
    name = row["name"][:-1]
    path = f"{parent}/{name}" if parent else name
    return SubfolderTotals(name, path, row["files"], row["size_bytes"], row["saved_at"])
