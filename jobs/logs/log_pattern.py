"""What to look for in logs: plain text or an RE2 expression, which takes linear time whatever a stranger
writes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2

from trainhub_launch.errors import SpecError

LONGEST = 500
MAX_TEXT_MEMORY_BYTES = 4 * 2**20
"""RE2's memory for plain text, which never needs more states than it has characters."""
MAX_EXPRESSION_MEMORY_BYTES = 256 * 2**10
"""RE2's memory for an expression. A larger cache of states helps no honest expression and makes hostile ones
slower."""
MAX_EXPRESSION_INSTRUCTIONS = 2000
"""The largest compiled expression. RE2 takes up to 15 ns for each instruction and byte, so the size of the
program bounds the time of a search: `.` counts as 8 instructions, `.{0,200}` as 1,800."""
TOO_LARGE = "pattern too large"
"""What RE2 says of an expression that does not fit into its memory."""
Pattern = Any
"""A compiled expression with `search` and `finditer`; it works on bytes, and no match of it leaves its
line."""


def compiled(text: str, *, regex: bool, case: bool) -> Pattern:
    """Raises SpecError naming `q`."""
    if not text:
        raise SpecError("q", "is empty: say what to look for")
    if len(text) > LONGEST:
        raise SpecError("q", f"has {len(text)} characters; at most {LONGEST} are taken")
    if not regex and ("\n" in text or "\r" in text):
        raise SpecError("q", "spans several lines; a search looks at one line at a time")
    try:
        made = _compiled(text, regex, case)
    except UnicodeEncodeError as error:
        raise SpecError("q", "is not valid Unicode text") from error
    except re2.error as error:
        said = error.args[0].decode("utf-8", "replace") if error.args else "no reason given"
        if TOO_LARGE in said:
            raise _too_large() from error
        why = said.replace("(?m)", "")
        raise SpecError(
            "q", f"cannot be used as an expression ({why}); RE2 has no look-around and no back references"
        ) from error
    if regex and program_size(made) > MAX_EXPRESSION_INSTRUCTIONS:
        raise _too_large()
    return made


def is_expression(pattern: Pattern) -> bool:
    """Whether the pattern is an expression and not plain text."""
    return not pattern.options.literal


def program_size(pattern: Pattern) -> int:
    """How many instructions the compiled pattern has, forwards or backwards."""
    return max(pattern.programsize, pattern.reverseprogramsize, 1)


def _too_large() -> SpecError:
    return SpecError(
        "q", "is too large an expression; repeat parts less often, such as .{0,100} instead of .{0,1000}"
    )


@lru_cache(maxsize=16)
def _compiled(text: str, regex: bool, case: bool) -> Pattern:
    options = re2.Options()
    options.literal, options.case_sensitive = not regex, case
    options.never_nl, options.log_errors = True, False
    options.max_mem = MAX_EXPRESSION_MEMORY_BYTES if regex else MAX_TEXT_MEMORY_BYTES
    made = re2.compile(f"(?m){text}" if regex else text, options)
    re2.purge()  # its own memory of expressions has no bound in bytes
    return made
