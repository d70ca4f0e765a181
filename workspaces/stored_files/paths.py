"""Checks paths of files below a folder of the hub: they must not lead out of it, neither on the hub nor where
they are unpacked."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import unquote

MAX_CHARACTERS = 900
# A file system that a folder is downloaded to takes no longer name.
MAX_PART_BYTES = 255
_DRIVE = re.compile(r"[A-Za-z]:")
# Names of devices in every folder of Windows, also with an extension, and with superscript digits.
_RESERVED = re.compile(
    r"(?:CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(?:COM|LPT)[0-9\u00b9\u00b2\u00b3])(?: *\..*| *)\Z", re.IGNORECASE
)
_MAX_DECODED = 5
_MAX_LABEL = 120


def path_problem(path: str) -> str:
    """Returns what is wrong with a path, as the rest of a sentence; "" if it may be stored."""
    if not path:
        return "it is empty"
    if len(path) > MAX_CHARACTERS or any(
        # Linux file systems limit the bytes of a name, not its characters.
        len(part.encode(errors="replace")) > MAX_PART_BYTES
        for part in path.split("/")
    ):
        return f"use at most {MAX_CHARACTERS} characters, and {MAX_PART_BYTES} bytes between two slashes"
    for decoded in _decodings(path):
        if any(ord(sign) < 32 or 127 <= ord(sign) < 160 for sign in decoded):
            return "it has control characters; leave them out"
        if "\\" in decoded:
            return "it has a backslash; separate folders by '/'"
        if decoded.startswith("/") or _DRIVE.match(decoded):
            return "it is absolute; give it relative to the run's artifacts"
        if any(part in ("", ".", "..") for part in decoded.split("/")):
            return "it has a part that is empty, '.' or '..'; leave that out"
    # U+FFFD is what a decoder writes for bytes that it could not read; surrogates cannot be encoded.
    if "\ufffd" in path or any(0xD800 <= ord(sign) < 0xE000 for sign in path):
        return "it is not UTF-8"
    return ""


def portable_problem(path: str) -> str:
    """Like `path_problem`, but also for paths that other systems may refuse after a download: names that
    Windows reserves, and names that look like others because their letters are composed differently."""
    wrong = path_problem(path)
    if wrong:
        return wrong
    if any(_RESERVED.match(part) for part in path.split("/")):
        return "Windows reserves such a name; rename it"
    if unicodedata.normalize("NFC", path) != path:
        return "its letters are not composed (Unicode NFC); rename it"
    if not path.isprintable():
        return "it has characters that cannot be shown; rename it"
    return ""


def display_path(path: str) -> str:
    """Returns the path for a message: in quotes, shortened, and with everything but ASCII escaped."""
    return ascii(path if len(path) <= _MAX_LABEL else f"{path[:_MAX_LABEL]}...")


def _decodings(path: str) -> list[str]:
    """Returns the path, and the results of decoding `%` again and again, because a client or a proxy may
    decode once more."""
    decodings = [path]
    while (
        len(decodings) <= _MAX_DECODED
        and (decoded := unquote(decodings[-1], errors="surrogateescape")) != decodings[-1]
    ):
        decodings.append(decoded)
    return decodings
