"""The runs of a comparison, as an address names them: 12,15,18."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Q

from jobs.models import Run
from trainhub_launch.errors import SpecError
from workspaces.models import Workspace

MOST_RUNS = 20
LONGEST_NUMBER = 9
_LONGEST_NAME = 32


def names_of(text: str) -> list[str]:
    """Numbers and ids, each once. Raises SpecError."""
    found = list(dict.fromkeys(part for part in text.replace(" ", "").split(",") if part))
    if not found:
        raise SpecError("runs", "must name the runs to compare by number, such as runs=12,15")
    if len(found) > MOST_RUNS:
        raise SpecError(
            "runs", f"may name at most {MOST_RUNS} runs, not {len(found)}: choose those that matter most"
        )
    for name in found:
        if not name.isalnum() or not name.isascii() or len(name) > _LONGEST_NAME:
            raise SpecError("runs", f"has {name[:40]!r}, which is neither a run's number nor its id")
    return found


def chosen(workspace: Workspace, names: Sequence[str]) -> list[Run]:
    """In the order of their names; what is not there, or not of this workspace, is left out."""
    numbers = {int(name) for name in names if is_number(name)}
    rows = Run.objects.of(workspace).filter(Q(number__in=numbers) | Q(pk__in=names), deleted_at=None)
    runs = rows.select_related("experiment", "created_by").defer("preview")
    found = {key: run for run in runs for key in (str(run.number), run.pk)}
    listed = [found[key] for name in names if (key := str(int(name)) if is_number(name) else name) in found]
    return list(dict.fromkeys(listed))


def missing(names: Sequence[str], found: Sequence[Run]) -> list[str]:
    """Of the names those that none of these runs has."""
    known = {name for run in found for name in (str(run.number), run.pk)}
    return [name for name in names if (str(int(name)) if is_number(name) else name) not in known]


def is_number(name: str) -> bool:
    return name.isdecimal() and len(name) <= LONGEST_NUMBER
