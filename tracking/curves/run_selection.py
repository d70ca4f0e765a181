"""Runs of a comparison by their names in a URL, such as 12,15,18."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Q

from jobs.models import Run
from trainhub_launch.errors import SpecError
from workspaces.models import Workspace

MAX_RUNS = 20
MAX_NUMBER_LENGTH = 9
_MAX_NAME_LENGTH = 32


def parse_run_names(text: str) -> list[str]:
    """Returns the distinct numbers and ids in `text`. Raises SpecError."""
    names = list(dict.fromkeys(part for part in text.replace(" ", "").split(",") if part))
    if not names:
        raise SpecError("runs", "must name the runs to compare by number, such as runs=12,15")
    if len(names) > MAX_RUNS:
        raise SpecError("runs", f"may name at most {MAX_RUNS} runs, not {len(names)}: leave some out")
    for name in names:
        if not name.isalnum() or not name.isascii() or len(name) > _MAX_NAME_LENGTH:
            raise SpecError("runs", f"has {name[:40]!r}, which is neither a run's number nor its id")
    return names


def load_named_runs(workspace: Workspace, names: Sequence[str]) -> list[Run]:
    """Returns the runs in the order of their names; runs that do not exist in the workspace are left out."""
    numbers = {int(name) for name in names if is_number(name)}
    rows = Run.objects.for_workspace(workspace).filter(
        Q(number__in=numbers) | Q(pk__in=names), deleted_at=None
    )
    runs = rows.select_related("experiment", "created_by").defer("preview")
    by_name = {key: run for run in runs for key in (str(run.number), run.pk)}
    listed = [
        by_name[key] for name in names if (key := str(int(name)) if is_number(name) else name) in by_name
    ]
    return list(dict.fromkeys(listed))


def missing_names(names: Sequence[str], runs: Sequence[Run]) -> list[str]:
    """Returns the names that none of the runs has."""
    existing = {name for run in runs for name in (str(run.number), run.pk)}
    return [name for name in names if (str(int(name)) if is_number(name) else name) not in existing]


def is_number(name: str) -> bool:
    return name.isdecimal() and len(name) <= MAX_NUMBER_LENGTH
