"""Text for people and lines for programs: what goes to standard output, and what to standard error."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from trainhub_sdk.records.runs import Finding

# Names come from other people: none of them moves the cursor or changes the title of the window.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_STATE_COLOURS = {
    "Completed": "green",
    "Failed": "red",
    "Canceled": "yellow",
    "Running": "cyan",
    "Queued": "blue",
}


def is_terminal() -> bool:
    return sys.stdout.isatty()


def has_colour() -> bool:
    """Returns whether standard output is a terminal on which colours are welcome."""
    return is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def state_colour(state: str) -> str:
    return _STATE_COLOURS.get(state, "")


def clean(text: object) -> str:
    """Returns a text from the hub without characters that a terminal obeys."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", str(text))


def print_json(rows: Iterable[Mapping[str, Any]]) -> None:
    import json

    for row in rows:
        click.echo(json.dumps(row, ensure_ascii=False))


def print_text(text: str) -> None:
    click.echo(text)


def print_note(text: str) -> None:
    """Prints what is not the result itself, to standard error."""
    click.echo(text, err=True)


def print_state(text: str, state: str) -> None:
    click.secho(text, fg=state_colour(state) or None, color=None if has_colour() else False)


def print_error(error: Exception) -> None:
    """Prints what was wrong and what to do: with the field, if the hub named some."""
    problems = getattr(error, "problems", ())
    lines = [
        f"{problem.field}: {problem.message}" if problem.field else problem.message for problem in problems
    ]
    version_note = getattr(error, "version_note", "")
    if lines and version_note:
        lines.append(version_note)
    for line in lines or [str(error)]:
        print_note(clean(line))


def print_findings(findings: Iterable[Finding], hub: str) -> None:
    for finding in findings:
        level = "" if finding.level == "error" else f"{finding.level}: "
        remedy = f" ({finding.action}: {hub}{finding.link})" if finding.link else ""
        print_note(clean(f"{level}{finding.field}: {finding.message}{remedy}"))
