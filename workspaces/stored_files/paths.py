"""Which paths a file may have below a folder of the hub's: they must not lead out of it, there or where it is
unpacked."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import unquote

MAX_CHARACTERS = 900
MAX_PART_BYTES = 255
"""A file system that a folder is downloaded to takes no longer name."""
_DRIVE = re.compile(r"[A-Za-z]:")
_RESERVED = re.compile(
    r"(?:CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(?:COM|LPT)[0-9\u00b9\u00b2\u00b3])(?: *\..*| *)\Z", re.IGNORECASE
)
_MAX_DECODED = 5
_MAX_SHOWN = 120


def problem(path: str) -> str:
    """What is wrong with a path, as the rest of a sentence; empty for one that may be stored."""
    if not path:
        return "it is empty"
    if len(path) > MAX_CHARACTERS or any(
        len(part.encode(errors="replace")) > MAX_PART_BYTES for part in path.split("/")
    ):
        return f"use at most {MAX_CHARACTERS} characters, and {MAX_PART_BYTES} bytes between two slashes"
    for seen in _decodings(path):
        if any(ord(sign) < 32 or 127 <= ord(sign) < 160 for sign in seen):
            return "it has control characters; leave them out"
        if "\\" in seen:
            return "it has a backslash; separate folders by '/'"
        if seen.startswith("/") or _DRIVE.match(seen):
            return "it is absolute; give it relative to the run's artifacts"
        if any(part in ("", ".", "..") for part in seen.split("/")):
            return "it has a part that is empty, '.' or '..'; leave that out"
    if "\ufffd" in path or any(0xD800 <= ord(sign) < 0xE000 for sign in path):
        return "it is not UTF-8"
    return ""


def portable_problem(path: str) -> str:
    """The same, and what a machine that the files are downloaded to may not take: names that Windows
    reserves, and names that look like others because their letters are composed differently."""
    wrong = problem(path)
    if wrong:
        return wrong
    if any(_RESERVED.match(part) for part in path.split("/")):
        return "Windows reserves such a name; rename it"
    if unicodedata.normalize("NFC", path) != path:
        return "its letters are not composed (Unicode NFC); rename it"
    if not path.isprintable():
        return "it has characters that cannot be shown; rename it"
    return ""


def shown(path: str) -> str:
    """For a message: in quotes, with everything but plain letters escaped, and not too long."""
    return ascii(path if len(path) <= _MAX_SHOWN else f"{path[:_MAX_SHOWN]}...")


def _decodings(path: str) -> list[str]:
    """The path as it is, and as each further decoding of `%` would have it: a client or a proxy may do one
    more."""
    found = [path]
    while (
        len(found) <= _MAX_DECODED and (decoded := unquote(found[-1], errors="surrogateescape")) != found[-1]
    ):
        found.append(decoded)
    return found
