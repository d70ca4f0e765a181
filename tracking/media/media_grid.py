"""What one run or several show by step as a grid: a row for each key, a cell for each run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from urllib.parse import quote, urlencode

from django.db.models import Max, Q
from django.urls import reverse

from jobs import outputs
from jobs.models import Artifact, Run
from tracking.artifacts.file_owners import RunFiles
from tracking.media import histograms
from tracking.media.step_files import (
    DOCUMENT,
    HISTOGRAM,
    IMAGE,
    KINDS,
    PAGE,
    SOUND,
    MediaSeries,
    StepFile,
    group_step_files,
)
from tracking.models import Histogram

# Of a run with more files, those whose paths come first in the alphabet are shown.
MAX_FILES = 50_000
_HAS_KIND = reduce(or_, (Q(path__iendswith=suffix) for suffix in KINDS))
# The part of the address below /api/v1/artifacts/ that sends what a cell shows. A histogram is no file;
# `MediaCell.config` has its address.
_ROUTES = {IMAGE: "images", SOUND: "sounds", DOCUMENT: "previews", PAGE: "pages"}
_HAS_STEP = reduce(or_, (Q(path__icontains=word) for word in ("step", "epoch", "iter")))


@dataclass(frozen=True)
class MediaCell:
    """The files of one key of one run. `number`: its place among all cells of the page."""

    number: int
    run: Run
    attempt: int
    series: MediaSeries

    @property
    def last(self) -> StepFile:
        return self.series.files[-1]

    @property
    def last_url(self) -> str:
        """The address of what is shown of the last file, of its smaller version if there is one."""
        return f"{self._bytes_root}{quote(self.last.small_path or self.last.path)}{self._attempt_query}"

    @property
    def last_page_url(self) -> str:
        return f"{self._page_root}{quote(self.last.path, safe='')}"

    @property
    def _bytes_root(self) -> str:
        if self.series.kind == HISTOGRAM:
            return ""
        return f"/api/v1/artifacts/{_ROUTES[self.series.kind]}/{RunFiles(self.run).root}/"

    @property
    def _page_root(self) -> str:
        page = reverse("run-tab", args=[self.run.number, "outputs"])
        return f"{page}{self._attempt_query}{'&' if self._attempt_query else '?'}file="

    @property
    def _histogram_url(self) -> str:
        if self.series.kind != HISTOGRAM:
            return ""
        address = reverse("run-histogram", args=[self.run.number])
        return f"{address}?{urlencode({'key': self.series.key, 'attempt': self.attempt})}"

    @property
    def _attempt_query(self) -> str:
        return "" if self.attempt == self.run.attempt else f"?attempt={self.attempt}"

    def config(self) -> dict[str, object]:
        """Returns what static/js/media/page.js needs to show another step."""
        return {
            "key": self.series.key,
            "kind": self.series.kind,
            "bytes": self._bytes_root,
            "figures": f"/api/v1/artifacts/figures/{RunFiles(self.run).root}/",
            "query": self._attempt_query,
            "page": self._page_root,
            "histogram": self._histogram_url,
            "files": [[file.step, file.path, file.small_path] for file in self.series.files],
        }


@dataclass(frozen=True)
class MediaRow:
    key: str
    kind: str
    cells: tuple[MediaCell, ...]

    @property
    def is_wide(self) -> bool:
        return self.kind in (DOCUMENT, PAGE)


@dataclass(frozen=True)
class MediaGrid:
    """`steps`: those at which any cell has a file, in order. `saved_at`: when the newest file was saved,
    which also changes if one is saved again under its name; None without files."""

    steps: tuple[int, ...]
    rows: tuple[MediaRow, ...]
    saved_at: datetime | None

    @property
    def last_index(self) -> int:
        return len(self.steps) - 1

    def config(self) -> dict[str, object]:
        cells = sorted((cell for row in self.rows for cell in row.cells), key=lambda cell: cell.number)
        saved_at = self.saved_at.isoformat() if self.saved_at else ""
        return {"steps": self.steps, "saved_at": saved_at, "cells": [cell.config() for cell in cells]}


def has_media(run: Run) -> bool:
    """Returns whether the run may have something to show by step, from the names of its files."""
    return (
        Artifact.objects.filter(_HAS_KIND, _HAS_STEP, run=run).exists()
        or Histogram.objects.filter(run=run).exists()
    )


def media_grid(runs: Sequence[tuple[Run, int]]) -> MediaGrid:
    """Returns the grid of these runs, each with the attempt whose files are shown."""
    rows: dict[tuple[str, str], list[MediaCell]] = {}
    number = 0
    files = Artifact.objects.filter(_HAS_KIND, _HAS_STEP, run__in=[run for run, _ in runs]).order_by()
    saved_at = dict(files.values_list("run_id").annotate(Max("created_at")))
    of_events = histograms.series(runs)
    for run, attempt in runs:
        of_files = _series(run, attempt) if run.pk in saved_at else ()
        for series in (*of_files, *of_events.get(run.pk, ())):
            rows.setdefault((series.key, series.kind), []).append(MediaCell(number, run, attempt, series))
            number += 1
    ordered = sorted(rows.items(), key=lambda item: (item[0][0].casefold(), item[0]))
    steps = sorted({file.step for cells in rows.values() for cell in cells for file in cell.series.files})
    media_rows = tuple(MediaRow(key, kind, tuple(cells)) for (key, kind), cells in ordered)
    return MediaGrid(tuple(steps), media_rows, max(saved_at.values(), default=None))


def _series(run: Run, attempt: int) -> tuple[MediaSeries, ...]:
    files = outputs.for_attempt(run, attempt).filter(_HAS_KIND, _HAS_STEP).order_by("path")
    return group_step_files(files.values_list("path", flat=True)[:MAX_FILES])
