"""Which series of JSON files may be tables or figures, from the first bytes of the newest file of each."""

from __future__ import annotations

import re
from collections.abc import Iterable

from django.db.models import QuerySet

from jobs.models import Artifact
from tracking.media.step_files import MediaSeries
from workspaces.stored_files import blobs

_FIRST_BYTES = 512
# A table of MLflow's `log_table` and a figure of plotly's `write_json` begin with one of these keys. The
# preview says whether the file is one.
_FIRST_KEY = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"(?:columns|index|data|layout|frames)"')


def without_other_json(series: Iterable[MediaSeries], files: QuerySet[Artifact]) -> tuple[MediaSeries, ...]:
    """Returns `series` without those of JSON files that are neither tables nor figures, such as the
    configuration in each checkpoint. `files`: the rows that the series are made of."""
    all_series = tuple(series)
    newest = [path for path in (item.files[-1].path for item in all_series) if is_json(path)]
    if not newest:
        return all_series
    hashes = dict(files.filter(path__in=newest).values_list("path", "sha256"))
    other = {path for path in newest if not _may_be_table_or_figure(hashes.get(path, ""))}
    return tuple(item for item in all_series if item.files[-1].path not in other)


def is_json(path: str) -> bool:
    return path.lower().endswith(".json")


def _may_be_table_or_figure(sha256: str) -> bool:
    try:
        with blobs.path(sha256).open("rb") as file:
            return _FIRST_KEY.match(file.read(_FIRST_BYTES)) is not None
    except OSError:
        # Its preview says that the bytes are missing.
        return True
