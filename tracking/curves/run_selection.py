"""The runs of a comparison, as an address names them: 12,15,18."""

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
    """Numbers and ids, each once. Raises SpecError."""
    names = list(dict.fromkeys(part for part in text.replace(" ", "").split(",") if part))
    if not names:
        raise SpecError("runs", "must name the runs to compare by number, such as runs=12,15")
    if len(names) > MAX_RUNS:
        raise SpecError(
            "runs", f"may name at most {MAX_RUNS} runs, not {len(names)}: choose those that matter most"
        )
    for name in names:
        if not name.isalnum() or not name.isascii() or len(name) > _MAX_NAME_LENGTH:
            raise SpecError("runs", f"has {name[:40]!r}, which is neither a run's number nor its id")
    return names


def load_named_runs(workspace: Workspace, names: Sequence[str]) -> list[Run]:
    """In the order of their names; what is not there, or not of this workspace, is left out."""
    numbers = {int(name) for name in names if is_number(name)}
    rows = Run.objects.of(workspace).filter(Q(number__in=numbers) | Q(pk__in=names), deleted_at=None)
    runs = rows.select_related("experiment", "created_by").defer("preview")
    names = {key: run for run in runs for key in (str(run.number), run.pk)}
    listed = [names[key] for name in names if (key := str(int(name)) if is_number(name) else name) in names]
    return list(dict.fromkeys(listed))


def missing_names(names: Sequence[str], names: Sequence[Run]) -> list[str]:
    """Of the names those that none of these runs has."""
    known = {name for run in names for name in (str(run.number), run.pk)}
    return [name for name in names if (str(int(name)) if is_number(name) else name) not in known]


def is_number(name: str) -> bool:
    return name.isdecimal() and len(name) <= MAX_NUMBER_LENGTH
