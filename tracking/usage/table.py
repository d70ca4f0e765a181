"""Usage as CSV for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from tracking.usage.usage_report import UsageLine
from workspaces.spreadsheets import plain_text

NUMBERS = ("gpu_hours", "node_hours", "energy_wh", "measured_gpu_hours", "runs")


def csv_text(by: str, lines: Sequence[UsageLine]) -> str:
    """Returns a header and a row for each line; energy without measurements is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out)
    columns = ("run", "name") if by == "run" else (by,)
    writer.writerow([*columns, *NUMBERS])
    for line in lines:
        names = (plain_text(line.name), plain_text(line.title)) if by == "run" else (plain_text(line.name),)
        writer.writerow([*names, *(_cell(getattr(line, number)) for number in NUMBERS)])
    return out.getvalue()


def _cell(number: float | None) -> str:
    return "" if number is None else f"{number:.6f}".rstrip("0").rstrip(".")
