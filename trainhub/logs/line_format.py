"""How a log line looks: of limited length, and without characters that steer a terminal or imitate another
line."""

from __future__ import annotations

import logging
import re
from types import TracebackType

MAX_MESSAGE = 2_000
"""Characters. Requests name paths of up to 64 KiB, and anybody may send them."""
MAX_TRACEBACK = 20_000
ENDS_KEPT = 400
"""Characters at the end of a message that is too long: what failed is often said last."""
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class LineFormatter(logging.Formatter):
    """Further lines of a record are indented, so none of them can pass for a record of its own."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        record.message = printable(shortened(record.message, MAX_MESSAGE))
        return super().formatMessage(record)

    def formatException(  # noqa: N802 - logging's name
        self, ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
    ) -> str:
        return printable(shortened(super().formatException(ei), MAX_TRACEBACK))


def shortened(text: str, longest: int) -> str:
    """Beginning and end of a text that is too long, with a note of how much is left out."""
    if len(text) <= longest:
        return text
    left_out = len(text) - longest
    return f"{text[: longest - ENDS_KEPT]} [... {left_out:,} characters ...] {text[-ENDS_KEPT:]}"


def printable(text: str) -> str:
    """The text with control characters escaped and further lines indented."""
    return CONTROL.sub(_escaped, text.replace("\r\n", "\n")).replace("\n", "\n    ")


def _escaped(match: re.Match[str]) -> str:
    return match.group().encode("unicode_escape").decode()
