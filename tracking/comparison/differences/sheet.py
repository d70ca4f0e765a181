"""Facts of runs side by side: a row a fact, a cell a run. The first run of which any are known is what the
others are held against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobs.models import Run
from tracking.comparison.tables import ComparisonCell, ComparisonRow, ComparisonTable

MAX_CELL_LENGTH = 300
Facts = Mapping[str, str]
"""Name -> what is known of one run; what is not is absent."""


def facts_table(runs: Sequence[Run], facts: Mapping[str, Facts], order: Sequence[str] = ()) -> ComparisonTable:
    """`facts`: by run id. The names of `order` come first, the others as they sort."""
    names = {name for run_facts in facts.values() for name in run_facts}
    rest = sorted(names - set(order), key=str.casefold)
    return ComparisonTable(
        tuple(_row(name, runs, facts) for name in (*(name for name in order if name in names), *rest))
    )


def _row(name: str, runs: Sequence[Run], facts: Mapping[str, Facts]) -> ComparisonRow:
    """A run of which nothing at all is known differs in nothing: that is said once, not in every row."""
    runs_with_facts = [run for run in runs if facts.get(run.pk)]
    base = facts[runs_with_facts[0].pk].get(name) if runs_with_facts else None
    return ComparisonRow(
        name, tuple(_cell(facts.get(run.pk, {}).get(name), base, is_known=run in runs_with_facts) for run in runs)
    )


def _cell(value: str | None, base: str | None, *, is_known: bool) -> ComparisonCell:
    short = value if value is None or len(value) <= MAX_CELL_LENGTH else f"{value[:MAX_CELL_LENGTH]} …"
    return ComparisonCell(short, value or "", is_known and value != base)
