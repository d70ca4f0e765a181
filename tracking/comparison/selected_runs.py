"""Which runs a comparison shows, and the colour that each has all over the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from jobs.models import Run
from tracking.curves.run_selection import MAX_RUNS, load_named_runs, missing_names
from trainhub_launch.errors import SpecError
from workspaces.models import Workspace

COLORS = 8
DASHES = ("solid", "dash", "dot")


@dataclass(frozen=True)
class ComparedRun:
    """`place` decides colour and dash, as static/js/charts/palette.js does. `is_reference`: pinned, not
    chosen."""

    run: Run
    place: int
    is_reference: bool

    @property
    def name(self) -> str:
        return self.run.display_name or str(self.run)

    @property
    def color(self) -> str:
        return f"var(--th-chart-{self.place % COLORS + 1})"

    @property
    def dash(self) -> str:
        return DASHES[self.place // COLORS % len(DASHES)]


@dataclass(frozen=True)
class RunSelection:
    """`runs`: the chosen ones, then references. `offered`: pinned runs that are not among them. `notes`: what
    was left out."""

    runs: tuple[Run, ...]
    references: frozenset[str]
    offered: tuple[Run, ...]
    notes: tuple[str, ...]


def select_runs(workspace: Workspace, names: Sequence[str], removed: Iterable[str]) -> RunSelection:
    """`wanted`, `without`: numbers or ids as an address has them; `without` are references that somebody has
    put away."""
    notes = []
    if len(names) > MAX_RUNS:
        notes.append(
            f"{len(names)} runs are named, and at most {MAX_RUNS} can be compared: these are the first. "
            "Take some out of the address to see others."
        )
    selected = load_named_runs(workspace, names[:MAX_RUNS])
    unknown = missing_names(names[:MAX_RUNS], selected)
    if unknown:
        are = "Run {} is" if len(unknown) == 1 else "Runs {} are"
        notes.append(f"{are.format(', '.join(unknown))} not here: deleted, or of another workspace.")
    removed_names = set(removed)
    pinned = [run for run in _pinned(workspace) if run not in selected]
    available = [run for run in pinned if str(run.number) not in removed_names] if selected else []
    references = available[: MAX_RUNS - len(selected)]
    offered = tuple(run for run in pinned if run not in references)
    return RunSelection((*selected, *references), frozenset(run.pk for run in references), offered, tuple(notes))


def compared_runs(choice: RunSelection, groups: Mapping[str, Sequence[Run]] | None) -> list[ComparedRun]:
    """Each run its own colour; where means of groups are drawn, that of its group."""
    places = {run.pk: place for place, run in enumerate(choice.runs)}
    if groups is not None:
        places = {run.pk: place for place, runs in enumerate(groups.values()) for run in runs}
    return [ComparedRun(run, places[run.pk], run.pk in choice.references) for run in choice.runs]


def parse_names(text: str) -> list[str]:
    """The names in an address, whatever else stands there. Raises SpecError where one can be no run's."""
    names = list(dict.fromkeys(part for part in text.replace(" ", "").split(",") if part))
    invalid = [name for name in names if not (name.isascii() and name.isalnum())]
    if invalid:
        raise SpecError(
            "runs",
            f"has {invalid[0][:40]!r}, which is neither a run's number nor its id; take it out of the address",
        )
    return names


def _pinned(workspace: Workspace) -> list[Run]:
    rows = Run.objects.of(workspace).filter(pinned=True, archived_at=None)
    return list(
        rows.select_related("experiment", "created_by").defer("preview").order_by("-number")[:MAX_RUNS]
    )
