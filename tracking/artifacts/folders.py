"""Lists one folder: its files, and totals of its subfolders, computed by the database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, Sum, Value
from django.db.models.functions import Left, StrIndex, Substr

from jobs.outputs import rows_below
from tracking.artifacts.file_owners import FileRow, FileRows


@dataclass(frozen=True)
class SubfolderTotals:
    """A subfolder; `files` counts the files at any depth, `saved_at` is the time of the latest."""

    name: str
    path: str
    files: int
    size_bytes: int
    saved_at: datetime


@dataclass(frozen=True)
class FolderListing:
    """Content of a folder; both lists are sorted by name."""

    folders: list[SubfolderTotals]
    files: list[FileRow]

    @property
    def size_bytes(self) -> int:
        return sum(item.size_bytes for item in (*self.folders, *self.files))

    @property
    def count(self) -> int:
        return sum(folder.files for folder in self.folders) + len(self.files)


def list_folder(rows: FileRows, path: str) -> FolderListing:
    """Returns the content of the folder `path` ("": the root); empty for the path of a file."""
    start = len(path) + 1 if path else 0
    inside = (
        rows_below(rows, path)
        # SQL counts characters from 1.
        .annotate(rest=Substr("path", start + 1))
        .annotate(slash=StrIndex("rest", Value("/")))
    )
    grouped = (
        inside.filter(slash__gt=0)
        .annotate(name=Left("rest", StrIndex("rest", Value("/"))))
        .order_by()
        .values("name")
        .annotate(files=Count("pk"), size_bytes=Sum("size_bytes"), saved_at=Max("created_at"))
    )
    folders = [_folder(path, row) for row in grouped]
    files = list(inside.filter(slash=0).order_by())
    return FolderListing(
        sorted(folders, key=lambda folder: folder.name), sorted(files, key=lambda row: row.path)
    )


def _folder(parent: str, row: dict[str, Any]) -> SubfolderTotals:
    # The slash at which the database cuts is part of the name.
    name = row["name"][:-1]
    path = f"{parent}/{name}" if parent else name
    return SubfolderTotals(name, path, row["files"], row["size_bytes"], row["saved_at"])
