"""Search patterns for logs: plain text or RE2 expressions, whose search time is linear even for hostile
ones."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2

from trainhub_launch.errors import SpecError

MAX_PATTERN_LENGTH = 500
# RE2's memory for plain text, which never needs more states than it has characters.
MAX_TEXT_MEMORY_BYTES = 4 * 2**20
# RE2's memory for an expression. A larger state cache does not help ordinary expressions, and makes hostile
# ones slower.
MAX_EXPRESSION_MEMORY_BYTES = 256 * 2**10
# The largest compiled expression. RE2 takes up to 15 ns for each instruction and byte, so the size of the
# program bounds the time of a search: `.` counts as 8 instructions, `.{0,200}` as 1,800.
MAX_EXPRESSION_INSTRUCTIONS = 2000
# RE2's message for an expression that does not fit into its memory.
TOO_LARGE = "pattern too large"
# A compiled expression with `search` and `finditer`; it works on bytes, and no match of it leaves its line.
Pattern = Any


def compile_pattern(text: str, *, regex: bool, case: bool) -> Pattern:
    """Returns the compiled pattern. Raises SpecError for the field `q`."""
    if not text:
        raise SpecError("q", "is empty; enter a search term")
    if len(text) > MAX_PATTERN_LENGTH:
        raise SpecError("q", f"has {len(text)} characters; at most {MAX_PATTERN_LENGTH} are allowed")
    if not regex and ("\n" in text or "\r" in text):
        raise SpecError("q", "spans several lines; a search looks at one line at a time")
    try:
        pattern = _compile(text, regex, case)
    except UnicodeEncodeError as error:
        raise SpecError("q", "is not valid Unicode text") from error
    except re2.error as error:
        message = error.args[0].decode("utf-8", "replace") if error.args else "no reason given"
        if TOO_LARGE in message:
            raise _too_large() from error
        # The message quotes the expression with the flag that `_compile` adds.
        why = message.replace("(?m)", "")
        raise SpecError(
            "q", f"cannot be used as an expression ({why}); RE2 has no look-around and no back references"
        ) from error
    if regex and program_size(pattern) > MAX_EXPRESSION_INSTRUCTIONS:
        raise _too_large()
    return pattern


def is_expression(pattern: Pattern) -> bool:
    """Returns whether the pattern is an expression rather than plain text."""
    return not pattern.options.literal


def program_size(pattern: Pattern) -> int:
    """Returns the number of instructions of the compiled pattern, the larger of both search directions."""
    return max(int(pattern.programsize), int(pattern.reverseprogramsize), 1)


def _too_large() -> SpecError:
    return SpecError(
        "q", "is too large an expression; repeat parts less often, such as .{0,100} instead of .{0,1000}"
    )


@lru_cache(maxsize=16)
def _compile(text: str, regex: bool, case: bool) -> Pattern:
    options = re2.Options()
    options.literal, options.case_sensitive = not regex, case
    # RE2 would write errors in expressions to the hub's standard error.
    options.never_nl, options.log_errors = True, False
    options.max_mem = MAX_EXPRESSION_MEMORY_BYTES if regex else MAX_TEXT_MEMORY_BYTES
    # With this flag `^` and `$` match at the ends of each line of a window, not only at its own ends.
    pattern = re2.compile(f"(?m){text}" if regex else text, options)
    re2.purge()  # RE2's own cache of expressions has no limit in bytes
    return pattern
