"""What to look for in logs: plain text or an RE2 expression, which takes linear time whatever a stranger writes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2

from trainhub_launch.errors import SpecError

LONGEST = 500
MAX_MEMORY_BYTES = 4 * 2**20
Pattern = Any
"""A compiled expression with `search` and `finditer`; it works on bytes, and no match of it leaves its line."""


def compiled(text: str, *, regex: bool, case: bool) -> Pattern:
    """Raises SpecError naming `q`."""
    if not text:
        raise SpecError("q", "is empty: say what to look for")
    if len(text) > LONGEST:
        raise SpecError("q", f"has {len(text)} characters; at most {LONGEST} are taken")
    if not regex and ("\n" in text or "\r" in text):
        raise SpecError("q", "spans several lines; a search looks at one line at a time")
    try:
        return _compiled(text, regex, case)
    except UnicodeEncodeError as error:
        raise SpecError("q", "is not valid Unicode text") from error
    except re2.error as error:
        said = error.args[0].decode("utf-8", "replace") if error.args else "no reason given"
        why = said.replace("(?m)", "")
        raise SpecError("q", f"cannot be used as an expression ({why}); RE2 has no look-around and no back references") from error


@lru_cache(maxsize=16)
def _compiled(text: str, regex: bool, case: bool) -> Pattern:
    options = re2.Options()
    options.literal, options.case_sensitive = not regex, case
    options.never_nl, options.log_errors, options.max_mem = True, False, MAX_MEMORY_BYTES
    made = re2.compile(f"(?m){text}" if regex else text, options)
    re2.purge()  # its own memory of expressions has no bound in bytes
    return made
