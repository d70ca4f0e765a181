"""Names of metrics as the hub takes them. Scripts use any character; what the hub refuses is replaced."""

from __future__ import annotations

import posixpath
import re

_ALLOWED = re.compile(r"[/\w.\- :]+")
_REFUSED = re.compile(r"[^/\w.\- :]")
# The prefix of a rank, and of a tag for the name, must fit too.
MAX_LENGTH = 200


def metric_key(name: str) -> str:
    """Returns the name under which the hub keeps a metric. Two names never get the same."""
    if len(name) <= MAX_LENGTH and _ALLOWED.fullmatch(name) and _is_plain_path(name):
        return name
    import hashlib

    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
    words = _REFUSED.sub("_", name).replace("..", "_").strip("/ ")[: MAX_LENGTH - 9]
    readable = posixpath.normpath(words) if words else ""
    return f"{readable}_{digest}" if readable not in ("", ".") else digest


def _is_plain_path(name: str) -> bool:
    return posixpath.normpath(name) == name and name != "." and not name.startswith(("..", "/"))
