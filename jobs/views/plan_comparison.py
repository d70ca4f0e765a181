"""The stored plan beside what the preview showed; pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trainhub_launch.plan import EnvValue, LaunchPlan, PlannedProcess, Reference


@dataclass(frozen=True)
class Difference:
    """What turned out otherwise than previewed. `ranks` share it; empty `shown` or `ran`: it was not
    there."""

    ranks: tuple[int, ...]
    name: str
    shown: str
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
    """One process as it was started."""

    process: PlannedProcess
    node: str
    env: tuple[tuple[str, str], ...]


def rows(plan: LaunchPlan) -> tuple[Row, ...]:
    return tuple(
        Row(process, command.node, tuple((name, str(value)) for name, value in process.env.items()))
        for command in plan.commands
        for process in command.processes
    )


def differences(preview: LaunchPlan, plan: LaunchPlan) -> tuple[Difference, ...]:
    """Grouped over the ranks that share them. `expected`: the preview said it is only known at launch."""
    before = {row.process.rank: row for row in rows(preview)}
    grouped: dict[tuple[str, str, str, bool], list[int]] = {}
    for row in rows(plan):
        for name, shown, ran, expected in _of(before.get(row.process.rank), row):
            grouped.setdefault((name, shown, ran, expected), []).append(row.process.rank)
    found = [
        Difference(tuple(ranks), name, shown, ran, expected)
        for (name, shown, ran, expected), ranks in grouped.items()
    ]
    return tuple(sorted(found, key=lambda item: (item.expected, item.name, item.ranks)))


def _of(before: Row | None, now: Row) -> Iterator[tuple[str, str, str, bool]]:
    if before is None:
        yield "process", "", "started", False
        return
    if before.node != now.node:
        yield "node", before.node, now.node, False
    if before.process.argv != now.process.argv:
        yield "command", " ".join(before.process.argv), " ".join(now.process.argv), False
    if before.process.gpus != now.process.gpus:
        provisional = all(gpu.startswith("<") for gpu in before.process.gpus)
        yield "GPUs", ", ".join(before.process.gpus), ", ".join(now.process.gpus), provisional
    for name in sorted({*before.process.env, *now.process.env}):
        shown, ran = before.process.env.get(name), now.process.env.get(name)
        if shown != ran:
            yield name, _text(shown), _text(ran), _was_open(shown)


def _text(value: EnvValue | None) -> str:
    return "" if value is None else str(value)


def _was_open(value: EnvValue | None) -> bool:
    return isinstance(value, Reference) or (isinstance(value, str) and value.startswith("<"))
