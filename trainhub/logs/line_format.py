"""The format of a log line: of limited length, and without characters that control a terminal or imitate
another line."""

from __future__ import annotations

import logging
import re
from types import TracebackType

# In characters. Requests contain paths of up to 64 KiB, and anybody may send them.
MAX_MESSAGE = 2_000
MAX_TRACEBACK = 20_000
# So many characters at the end of a text that is too long are preserved: the cause often stands last.
END_CHARS = 400
# ASCII and C1 controls but tab and newline, Unicode's line separators, and the marks that reverse the
# direction of text.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class LineFormatter(logging.Formatter):
    """A formatter that indents further lines of a record, so that none of them looks like a record of its
    own."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        record.message = printable(shortened(record.message, MAX_MESSAGE))
        return super().formatMessage(record)

    def formatException(  # noqa: N802 - logging's name
        self, ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
    ) -> str:
        return printable(shortened(super().formatException(ei), MAX_TRACEBACK))


def shortened(text: str, longest: int) -> str:
    """Returns the beginning and the end of a text that is longer than `longest` characters, with a note of
    how many are left out."""
    if len(text) <= longest:
        return text
    omitted = len(text) - longest
    return f"{text[: longest - END_CHARS]} [... {omitted:,} characters ...] {text[-END_CHARS:]}"


def printable(text: str) -> str:
    """Returns the text with control characters escaped and further lines indented."""
    return CONTROL.sub(_escaped, text.replace("\r\n", "\n")).replace("\n", "\n    ")


def _escaped(match: re.Match[str]) -> str:
    return match.group().encode("unicode_escape").decode()
