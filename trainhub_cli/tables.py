"""Tables: aligned columns that fit the terminal, or plain ones where the output is no terminal."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import NamedTuple
from unicodedata import combining, east_asian_width

import click

from trainhub_cli.printing import clean, has_colour, is_terminal, state_colour

GAP = "  "
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
# A shortened name keeps so many characters, if other columns can be left out instead.
NARROWEST, LAST_RESORT = 12, 4


class Column(NamedTuple):
    """`is_number`: aligned to the right, and never shortened. `is_name`: shortened where there is no room.
    `rank`: of two columns without room the one with the larger rank is left out first; 0 = never."""

    title: str
    is_number: bool = False
    is_name: bool = False
    rank: int = 0


def number(title: str, rank: int = 0) -> Column:
    return Column(title, is_number=True, rank=rank)


def name(title: str, rank: int = 0) -> Column:
    return Column(title, is_name=True, rank=rank)


class Layout(NamedTuple):
    """A table as it is drawn: texts with the width of their column, not aligned yet."""

    columns: list[Column]
    widths: list[int]
    rows: list[list[str]]


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[str]], empty: str) -> None:
    """Prints a table; `empty` says on a terminal that there are no rows."""
    if not rows and is_terminal():
        click.echo(empty)
        return
    layout = lay_out(columns, rows, terminal_width() if is_terminal() else None)
    if has_colour():
        from trainhub_cli.rich_tables import print_rich

        print_rich(layout)
        return
    for line in text_lines(layout):
        click.echo(line)


def terminal_width() -> int:
    return shutil.get_terminal_size().columns


def lay_out(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None) -> Layout:
    """Returns the table for a terminal of `width`, None for one without an end: first names are shortened,
    then columns left out, then names shortened further. What is left may be too wide for a narrow one."""
    cells = [[clean(cell).replace("\n", " ").replace("\t", " ") for cell in row] for row in rows]
    indexes = list(range(len(columns)))
    while True:
        widths = [_natural_width(columns[index].title, cells, index) for index in indexes]
        if width is not None:
            _shorten(widths, [columns[index] for index in indexes], width, NARROWEST)
        leave_out = max(indexes, key=lambda index: columns[index].rank)
        if width is None or _total(widths) <= width or columns[leave_out].rank == 0:
            break
        indexes.remove(leave_out)
    visible = [columns[index] for index in indexes]
    if width is not None:
        _shorten(widths, visible, width, LAST_RESORT)
    texts = [[_cut(row[index], widths[place]) for place, index in enumerate(indexes)] for row in cells]
    return Layout(visible, widths, texts)


def text_lines(layout: Layout) -> list[str]:
    titles = [_cut(column.title, width) for column, width in zip(layout.columns, layout.widths)]
    lines = []
    for row in [titles, *layout.rows]:
        cells = [
            _aligned(text, width, column) for text, width, column in zip(row, layout.widths, layout.columns)
        ]
        lines.append(GAP.join(cells).rstrip())
    return lines


def cell_colour(column: Column, text: str) -> str:
    return state_colour(text) if column.title == "STATE" else ""


def cell_width(text: str) -> int:
    """Returns how many columns a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def _aligned(text: str, width: int, column: Column) -> str:
    space = " " * max(0, width - cell_width(text))
    return space + text if column.is_number else text + space


def _natural_width(title: str, cells: Sequence[Sequence[str]], index: int) -> int:
    return max([cell_width(title), *(cell_width(row[index]) for row in cells)])


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _shorten(widths: list[int], columns: Sequence[Column], width: int, narrowest: int) -> None:
    """Makes the widest names narrower, until all fit or none is wider than `narrowest`."""
    while _total(widths) > width:
        names = [place for place, column in enumerate(columns) if column.is_name]
        widest = max(names, key=lambda place: widths[place], default=None)
        if widest is None or widths[widest] <= narrowest:
            return
        widths[widest] -= 1


def _cut(text: str, width: int) -> str:
    if cell_width(text) <= width:
        return text
    while text and cell_width(text) > width - 1:
        text = text[:-1]
    return text + ELLIPSIS
