"""Facts of runs side by side: a row a fact, a cell a run. The first run of which any are known is what the
others are held against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobs.models import Run
from tracking.comparison.tables import Cell, Row, Table

SHOWN_CHARACTERS = 300
Facts = Mapping[str, str]
"""Name -> what is known of one run; what is not is absent."""


def sheet(runs: Sequence[Run], facts: Mapping[str, Facts], order: Sequence[str] = ()) -> Table:
    """`facts`: by run id. The names of `order` come first, the others as they sort."""
    names = {name for told in facts.values() for name in told}
    rest = sorted(names - set(order), key=str.casefold)
    return Table(
        tuple(_row(name, runs, facts) for name in (*(name for name in order if name in names), *rest))
    )


def _row(name: str, runs: Sequence[Run], facts: Mapping[str, Facts]) -> Row:
    """A run of which nothing at all is known differs in nothing: that is said once, not in every row."""
    known = [run for run in runs if facts.get(run.pk)]
    base = facts[known[0].pk].get(name) if known else None
    return Row(
        name, tuple(_cell(facts.get(run.pk, {}).get(name), base, is_known=run in known) for run in runs)
    )


def _cell(value: str | None, base: str | None, *, is_known: bool) -> Cell:
    short = value if value is None or len(value) <= SHOWN_CHARACTERS else f"{value[:SHOWN_CHARACTERS]} …"
    return Cell(short, value or "", is_known and value != base)
