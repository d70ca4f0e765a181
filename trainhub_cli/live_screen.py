"""A table on the screen of the terminal that is drawn again every two seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import click

from trainhub_cli.printing import is_terminal
from trainhub_cli.tables import Column, lay_out, terminal_width
from trainhub_sdk.errors import HubUnreachable

PAUSE_S = 2.0
HEADER_LINES = 3


def show_live(
    title: str, columns: Sequence[Column], read_rows: Callable[[], Sequence[Sequence[str]]]
) -> None:
    """Shows the rows, anew every two seconds, until Ctrl-C. Where the hub does not answer for a time, the
    screen says so. Raises UsageError where there is no screen, and HubRefused."""
    if not is_terminal():
        raise click.UsageError(
            "--watch: it needs a terminal; without one leave it out, and repeat the command."
        )
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    from trainhub_cli.rich_tables import rich_table

    console = Console(highlight=False)
    rows, note = read_rows(), ""
    with suppress(KeyboardInterrupt), Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            layout = lay_out(columns, rows[: max(1, console.height - HEADER_LINES)], terminal_width())
            hidden = len(rows) - len(layout.rows)
            more = f", {hidden} more do not fit" if hidden else ""
            heading = Text(f"{title}: {len(rows)} at {time.strftime('%H:%M:%S')}{more}. Ctrl-C ends. {note}")
            live.update(Group(heading, Text(""), rich_table(layout)), refresh=True)
            time.sleep(PAUSE_S)
            try:
                rows, note = read_rows(), ""
            except HubUnreachable as error:
                note = f"The hub does not answer: {error.reason}."
