"""A table of facts with a row for each fact and a cell for each run. The base is the first run that has any
facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobs.models import Run
from tracking.comparison.tables import ComparisonCell, ComparisonRow, ComparisonTable

MAX_CELL_LENGTH = 300
# The known facts of one run, by name.
Facts = Mapping[str, str]


def facts_table(
    runs: Sequence[Run], facts: Mapping[str, Facts], order: Sequence[str] = ()
) -> ComparisonTable:
    """Returns the table of `facts`, which are by run id. The names in `order` come first, the others in
    alphabetical order."""
    names = {name for run_facts in facts.values() for name in run_facts}
    rest = sorted(names - set(order), key=str.casefold)
    return ComparisonTable(
        tuple(_row(name, runs, facts) for name in (*(name for name in order if name in names), *rest))
    )


def _row(name: str, runs: Sequence[Run], facts: Mapping[str, Facts]) -> ComparisonRow:
    """Returns one row. A run without any facts is not marked as different: the page says once that it has
    none."""
    runs_with_facts = [run for run in runs if facts.get(run.pk)]
    base = facts[runs_with_facts[0].pk].get(name) if runs_with_facts else None
    return ComparisonRow(
        name,
        tuple(_cell(facts.get(run.pk, {}).get(name), base, has_run=run in runs_with_facts) for run in runs),
    )


def _cell(value: str | None, base: str | None, *, has_run: bool) -> ComparisonCell:
    short = value if value is None or len(value) <= MAX_CELL_LENGTH else f"{value[:MAX_CELL_LENGTH]} …"
    return ComparisonCell(short, value or "", has_run and value != base)
