"""What is mounted where, as the kernel says. Nothing here asks a file server."""

from __future__ import annotations

import os

MOUNTS = "/proc/self/mountinfo"


def find_mount(path: str, mounts: str = "") -> tuple[str, str]:
    """Returns type and source of the file system in which the path, which has no links, lies. `mounts`: the
    content of /proc/self/mountinfo."""
    longest, result = "", ("", "")
    for target, kind, source in _read(mounts):
        is_above = path == target or path.startswith(f"{target.rstrip('/')}/")
        # The last of several at the same place covers the others.
        if is_above and len(target) >= len(longest):
            longest, result = target, (kind, source)
    return result


def is_mount_point(path: str) -> bool:
    """Returns whether a file system is mounted exactly there."""
    return any(target == path for target, _, _ in _read(""))


def _read(mounts: str) -> list[tuple[str, str, str]]:
    """Returns target, type and source of each mount, in their order."""
    if not mounts:
        with open(MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
            mounts = file.read()
    table = []
    for line in mounts.splitlines():
        first, _, last = line.partition(" - ")
        kind, source = last.split()[:2]
        table.append((_unescaped(first.split()[4]), kind, source))
    return table


def _unescaped(text: str) -> str:
    """The kernel writes white space and backslashes as octal numbers."""
    return os.fsdecode(os.fsencode(text).decode("unicode_escape").encode("latin-1"))
