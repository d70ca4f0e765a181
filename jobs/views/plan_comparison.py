"""Compares the plan that ran with the plan that the preview showed. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trainhub_launch.plan import EnvValue, LaunchPlan, PlannedProcess, Reference


@dataclass(frozen=True)
class VariableDifference:
    """A value that differs between preview and final plan.

    `name`: a variable or a part of the command line. `ranks`: the ranks that have this difference.
    `previewed` or `ran` is empty if the value did not exist there. `expected`: the preview marked the value
    as known only at launch."""

    ranks: tuple[int, ...]
    name: str
    previewed: str
    ran: str
    expected: bool

    @property
    def who(self) -> str:
        if len(self.ranks) == 1:
            return f"rank {self.ranks[0]}"
        contiguous = self.ranks == tuple(range(self.ranks[0], self.ranks[-1] + 1))
        return (
            f"ranks {self.ranks[0]}-{self.ranks[-1]}"
            if contiguous
            else "ranks " + ", ".join(map(str, self.ranks))
        )


@dataclass(frozen=True)
class Row:
    """One process of a plan with the name of its node and its environment as text."""

    process: PlannedProcess
    node: str
    env: tuple[tuple[str, str], ...]


def rows(plan: LaunchPlan) -> tuple[Row, ...]:
    return tuple(
        Row(process, command.node, tuple((name, str(value)) for name, value in process.env.items()))
        for command in plan.commands
        for process in command.processes
    )


def differences(preview: LaunchPlan, plan: LaunchPlan) -> tuple[VariableDifference, ...]:
    """Returns what differs between both plans, unexpected differences first; equal ones of several ranks are
    merged."""
    # Ranks are compared by number: the preview may have placed them on other nodes.
    before = {row.process.rank: row for row in rows(preview)}
    grouped: dict[tuple[str, str, str, bool], list[int]] = {}
    for row in rows(plan):
        for name, previewed, ran, expected in _of(before.get(row.process.rank), row):
            grouped.setdefault((name, previewed, ran, expected), []).append(row.process.rank)
    ranks_run = {row.process.rank for row in rows(plan)}
    for rank in sorted(before.keys() - ranks_run):
        grouped.setdefault(("process", "planned", "", False), []).append(rank)
    changed = [
        VariableDifference(tuple(ranks), name, shown, ran, expected)
        for (name, shown, ran, expected), ranks in grouped.items()
    ]
    return tuple(sorted(changed, key=lambda item: (item.expected, item.name, item.ranks)))


def _of(before: Row | None, now: Row) -> Iterator[tuple[str, str, str, bool]]:
    if before is None:
        yield "process", "", "started", False
        return
    if before.node != now.node:
        yield "node", before.node, now.node, False
    if before.process.argv != now.process.argv:
        yield "command", " ".join(before.process.argv), " ".join(now.process.argv), False
    if before.process.gpus != now.process.gpus:
        # The planner writes `<GPU 0 of alpha>` for a GPU that is chosen only when the run is placed.
        planned = before.process.gpus
        provisional = bool(planned) and all(gpu.startswith("<") for gpu in planned)
        yield "GPUs", ", ".join(before.process.gpus), ", ".join(now.process.gpus), provisional
    for name in sorted({*before.process.env, *now.process.env}):
        previewed, ran = before.process.env.get(name), now.process.env.get(name)
        if previewed != ran:
            yield name, _text(previewed), _text(ran), _was_open(previewed)


def _text(value: EnvValue | None) -> str:
    return "" if value is None else str(value)


def _was_open(value: EnvValue | None) -> bool:
    return isinstance(value, Reference) or (isinstance(value, str) and value.startswith("<"))
