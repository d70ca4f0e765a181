"""Which modules are part of Python itself, by its minor version."""

from __future__ import annotations

import sys

# Module -> the first minor version without it (PEP 594 and the lists "Removed" of What's New).
REMOVED = {
    **dict.fromkeys(("asynchat", "asyncore", "distutils", "imp", "smtpd"), 12),
    **dict.fromkeys(
        (
            *("aifc", "audioop", "cgi", "cgitb", "chunk", "crypt", "imghdr", "lib2to3", "mailcap", "msilib"),
            *(
                "nis",
                "nntplib",
                "ossaudiodev",
                "pipes",
                "sndhdr",
                "spwd",
                "sunau",
                "telnetlib",
                "uu",
                "xdrlib",
            ),
        ),
        13,
    ),
}
# Module -> the first minor version with it.
_ADDED = {"tomllib": 11, "zoneinfo": 9, "graphlib": 9, "compression": 14, "annotationlib": 14}
ALWAYS = sys.stdlib_module_names | {"__main__"}


def is_standard(module: str, python: str) -> bool:
    """Returns whether Python of the minor version ("3.12") has the top-level module."""
    minor = int(python.split(".")[1])
    if module in REMOVED:
        return minor < REMOVED[module]
    if module in _ADDED:
        return minor >= _ADDED[module]
    return module in ALWAYS
