"""Logs on the terminal, and what Ctrl-C means while one is followed."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from trainhub_cli import exit_codes
from trainhub_cli.printing import clean, print_note

if TYPE_CHECKING:
    from trainhub_sdk.log_reader import LogText
    from trainhub_sdk.run import Run

SECOND_INTERRUPT_S = 2.0


def follow_run(
    run: Run,
    *,
    with_outcome: bool = False,
    rank: int | None = None,
    every_rank: bool = False,
    last_lines: int | None = None,
    pattern: re.Pattern[str] | None = None,
) -> int:
    """Prints the log until the run has ended; before it, to standard error, what the run waits for and how it
    is prepared. Returns the exit code: with `with_outcome` that of the run, whose failure is then
    explained."""
    from trainhub_sdk.log_reader import follow_logs

    parts = follow_logs(
        run,
        rank,
        every_rank=every_rank,
        last_lines=last_lines,
        while_waiting=_WaitingNotes(run).print_change,
    )
    try:
        print_log(_print_preparation(parts), every_rank, pattern)
        if not with_outcome:
            return exit_codes.COMPLETED
        run.wait(raise_on_error=False)
    except KeyboardInterrupt:
        return _detach(run)
    print_outcome(run)
    return exit_codes.of_state(run.state)


class _WaitingNotes:
    """Prints the state of a run that waits, and why, whenever that has changed."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._last = ""

    def print_change(self) -> None:
        from trainhub_sdk.states import is_waiting

        sentence = f": {self._run.sentence}" if self._run.sentence else "."
        note = f"Run {self._run.number} is {self._run.state}{sentence}"
        if is_waiting(self._run.state) and note != self._last:
            self._last = note
            print_note(clean(note))


def _print_preparation(parts: Iterable[LogText]) -> Iterator[LogText]:
    """Prints the logs of the preparation to standard error, and the name of what follows them. Yields the
    others."""
    title = ""
    for part in parts:
        if title != part.log and (title or part.rank is None):
            print_note(f"--- {clean(part.log)}")
        if part.rank is None:
            title = part.log
            click.echo(part.text, nl=False, err=True)
        else:
            title = ""
            yield part


def print_log(parts: Iterable[LogText], with_rank: bool, pattern: re.Pattern[str] | None) -> None:
    """Prints the parts: as they are, or by line where each is filtered or gets its rank in front."""
    if not with_rank and pattern is None:
        for part in parts:
            click.echo(part.text, nl=False)
        return
    for line in _lines(parts, with_rank):
        if pattern is None or pattern.search(line):
            click.echo(line)


def print_outcome(run: Run) -> None:
    """Prints how the run has ended, why it has failed, and what to do about that, to standard error."""
    if run.cause is None:
        print_note(clean(run.explain()))
        return
    print_note(clean(f"Run {run.number} is {run.state}. The cause: {run.cause.line}"))
    if run.cause.meaning:
        print_note(clean(run.cause.meaning))
    print_note(clean(f"What to do: {run.cause.remedy}"))
    if run.cause.link:
        print_note(clean(f"{run.cause.action}: {run.api.url}{run.cause.link}"))


def _detach(run: Run) -> int:
    """Leaves the run alone, unless Ctrl-C comes again at once. Returns the exit code."""
    try:
        # In here: who reads the sentence may press the keys before it has returned.
        print_note(
            f"\nDetached: run {run.number} continues. Follow it again: trainhub logs -f {run.number}\n"
            f"Ctrl-C within {SECOND_INTERRUPT_S:.0f} s stops it."
        )
        time.sleep(SECOND_INTERRUPT_S)
    except KeyboardInterrupt:
        run.cancel()
        print_note(f"Run {run.number} is asked to stop: {run.state}.")
    return exit_codes.INTERRUPTED


def _lines(parts: Iterable[LogText], with_rank: bool) -> Iterator[str]:
    """Yields whole lines; those of several ranks take turns as they come."""
    rests: dict[tuple[str, int], tuple[str, str]] = {}
    for part in parts:
        prefix = f"[{'-' if part.rank is None else part.rank}] " if with_rank else ""
        key = (part.log, part.attempt)
        *lines, rest = (rests.get(key, ("", ""))[1] + part.text).split("\n")
        rests[key] = (prefix, rest)
        yield from (prefix + line for line in lines)
    yield from (prefix + rest for prefix, rest in rests.values() if rest)
