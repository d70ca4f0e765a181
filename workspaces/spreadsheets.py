"""Makes text safe for CSV files. Spreadsheets evaluate a cell that begins like a formula, so each text from
outside passes through here."""

from __future__ import annotations

import re

# Signs that begin a formula, also in full width, and after blanks and quotes, which some programs strip.
_FORMULA = re.compile(r"[\t\r\n]|[\s\"'\ufeff\u200b]*[=+\-@\uff1d\uff0b\uff0d\uff20]")


def plain_text(text: str) -> str:
    """Returns the text as a cell of a CSV file: in one line, and with an apostrophe before anything that a
    spreadsheet would take for a formula.

    For text only: a number such as -0.5 is no formula and is written as it is."""
    # The csv module does not quote a carriage return that is not part of its own line end.
    line = text.replace("\r", " ").replace("\n", " ")
    return f"'{line}" if _FORMULA.match(text) else line
