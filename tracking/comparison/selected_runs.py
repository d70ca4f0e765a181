"""Which runs a comparison shows, and the colour that each has all over the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from jobs.models import Run
from tracking.curves.run_selection import MOST_RUNS, chosen, missing
from trainhub_launch.errors import SpecError
from workspaces.models import Workspace

COLORS = 8
DASHES = ("solid", "dash", "dot")


@dataclass(frozen=True)
class ShownRun:
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
class Choice:
    """`runs`: the chosen ones, then references. `offered`: pinned runs that are not among them. `notes`: what
    was left out."""

    runs: tuple[Run, ...]
    references: frozenset[str]
    offered: tuple[Run, ...]
    notes: tuple[str, ...]


def choose(workspace: Workspace, wanted: Sequence[str], without: Iterable[str]) -> Choice:
    """`wanted`, `without`: numbers or ids as an address has them; `without` are references that somebody has
    put away."""
    notes = []
    if len(wanted) > MOST_RUNS:
        notes.append(
            f"{len(wanted)} runs are named, and at most {MOST_RUNS} can be compared: these are the first. "
            "Take some out of the address to see others."
        )
    named = chosen(workspace, wanted[:MOST_RUNS])
    absent = missing(wanted[:MOST_RUNS], named)
    if absent:
        are = "Run {} is" if len(absent) == 1 else "Runs {} are"
        notes.append(f"{are.format(', '.join(absent))} not here: deleted, or of another workspace.")
    away = set(without)
    pinned = [run for run in _pinned(workspace) if run not in named]
    wished = [run for run in pinned if str(run.number) not in away] if named else []
    references = wished[: MOST_RUNS - len(named)]
    offered = tuple(run for run in pinned if run not in references)
    return Choice((*named, *references), frozenset(run.pk for run in references), offered, tuple(notes))


def placed(choice: Choice, groups: Mapping[str, Sequence[Run]] | None) -> list[ShownRun]:
    """Each run its own colour; where means of groups are drawn, that of its group."""
    places = {run.pk: place for place, run in enumerate(choice.runs)}
    if groups is not None:
        places = {run.pk: place for place, runs in enumerate(groups.values()) for run in runs}
    return [ShownRun(run, places[run.pk], run.pk in choice.references) for run in choice.runs]


def wanted_of(text: str) -> list[str]:
    """The names in an address, whatever else stands there. Raises SpecError where one can be no run's."""
    found = list(dict.fromkeys(part for part in text.replace(" ", "").split(",") if part))
    wrong = [name for name in found if not (name.isascii() and name.isalnum())]
    if wrong:
        raise SpecError(
            "runs",
            f"has {wrong[0][:40]!r}, which is neither a run's number nor its id; take it out of the address",
        )
    return found


def _pinned(workspace: Workspace) -> list[Run]:
    found = Run.objects.of(workspace).filter(pinned=True, archived_at=None)
    return list(
        found.select_related("experiment", "created_by").defer("preview").order_by("-number")[:MOST_RUNS]
    )
