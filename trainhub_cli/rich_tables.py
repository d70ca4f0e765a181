"""Tables with colours, on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trainhub_cli.tables import GAP, Layout, cell_colour


def print_rich(layout: Layout) -> None:
    # The layout has the width of the terminal already; rich must not shorten it once more.
    console = Console(width=_width(layout), highlight=False, soft_wrap=False)
    console.print(rich_table(layout), overflow="ignore", crop=False)


def rich_table(layout: Layout) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, len(GAP), 0, 0), header_style="bold")
    for column, width in zip(layout.columns, layout.widths):
        table.add_column(
            Text(column.title), width=width, no_wrap=True, justify="right" if column.is_number else "left"
        )
    for row in layout.rows:
        table.add_row(
            *(Text(text, style=cell_colour(column, text)) for column, text in zip(layout.columns, row))
        )
    return table


def _width(layout: Layout) -> int:
    return max(1, sum(layout.widths) + len(GAP) * len(layout.widths))
