"""The runs of a comparison, and their colours on the page."""

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
    """A run of the comparison. `place` determines colour and dash, as in static/js/charts/palette.js.
    `is_reference`: shown because it is pinned, not because it was selected."""

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
    """`runs` are the selected ones and then the references; `offered` are pinned runs that are not shown;
    `notes` say what was left out."""

    runs: tuple[Run, ...]
    references: frozenset[str]
    offered: tuple[Run, ...]
    notes: tuple[str, ...]


def select_runs(workspace: Workspace, names: Sequence[str], removed: Iterable[str]) -> RunSelection:
    """Returns the runs with these numbers or ids, and the pinned runs except those whose numbers are in
    `removed`."""
    notes = []
    if len(names) > MAX_RUNS:
        notes.append(
            f"{len(names)} runs are selected, but at most {MAX_RUNS} can be compared: these are the first. "
            "Remove some from the address to see others."
        )
    selected = load_named_runs(workspace, names[:MAX_RUNS])
    unknown = missing_names(names[:MAX_RUNS], selected)
    if unknown:
        are = "Run {} is" if len(unknown) == 1 else "Runs {} are"
        notes.append(f"{are.format(', '.join(unknown))} not available: deleted, or in another workspace.")
    removed_names = set(removed)
    pinned = [run for run in _pinned(workspace) if run not in selected]
    # Without selected runs the page explains how to start, instead of comparing the pinned runs.
    available = [run for run in pinned if str(run.number) not in removed_names] if selected else []
    references = available[: MAX_RUNS - len(selected)]
    offered = tuple(run for run in pinned if run not in references)
    return RunSelection(
        (*selected, *references), frozenset(run.pk for run in references), offered, tuple(notes)
    )


def compared_runs(choice: RunSelection, groups: Mapping[str, Sequence[Run]] | None) -> list[ComparedRun]:
    """Returns the runs with their colours: one for each run, or for each group if groups are drawn."""
    places = {run.pk: place for place, run in enumerate(choice.runs)}
    if groups is not None:
        places = {run.pk: place for place, runs in enumerate(groups.values()) for run in runs}
    return [ComparedRun(run, places[run.pk], run.pk in choice.references) for run in choice.runs]


def parse_names(text: str) -> list[str]:
    """Returns the comma-separated run names. Raises SpecError for one that is neither a number nor an id."""
    names = list(dict.fromkeys(part for part in text.replace(" ", "").split(",") if part))
    invalid = [name for name in names if not (name.isascii() and name.isalnum())]
    if invalid:
        raise SpecError(
            "runs",
            f"has {invalid[0][:40]!r}, which is neither a run's number nor its id; "
            "take it out of the address",
        )
    return names


def _pinned(workspace: Workspace) -> list[Run]:
    rows = Run.objects.for_workspace(workspace).filter(pinned=True, archived_at=None)
    return list(
        rows.select_related("experiment", "created_by").defer("preview").order_by("-number")[:MAX_RUNS]
    )
