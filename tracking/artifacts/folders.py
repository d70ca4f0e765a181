"""One folder at a time: what lies in it, its folders summed up, however many files there are below."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, QuerySet, Sum, Value
from django.db.models.functions import Left, StrIndex, Substr

from tracking.artifacts.file_owners import Row, below


@dataclass(frozen=True)
class Folder:
    """`files`: how many lie in it and in its folders; `saved_at`: the latest of them."""

    name: str
    path: str
    files: int
    size_bytes: int
    saved_at: datetime


@dataclass(frozen=True)
class Listing:
    """Both sorted by name."""

    folders: list[Folder]
    files: list[Row]

    @property
    def size_bytes(self) -> int:
        return sum(item.size_bytes for item in (*self.folders, *self.files))

    @property
    def count(self) -> int:
        return sum(folder.files for folder in self.folders) + len(self.files)


def listing(rows: QuerySet, path: str) -> Listing:
    """What lies in the folder `path` ("": the root) of `rows`; of a file's own path, nothing."""
    start = len(path) + 1 if path else 0
    inside = (
        below(rows, path)
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
    return Listing(sorted(folders, key=lambda folder: folder.name), sorted(files, key=lambda row: row.path))


def _folder(parent: str, row: dict[str, Any]) -> Folder:
    name = row["name"][:-1]
    path = f"{parent}/{name}" if parent else name
    return Folder(name, path, row["files"], row["size_bytes"], row["saved_at"])
