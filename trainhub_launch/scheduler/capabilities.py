"""Compares the capabilities that a run needs with those that a node has.

A node reports its version of glibc among its capabilities, as `glibc:2.36`; a run needs `glibc:2.39:numpy
2.1`, with the package that needs it. Older agents report none: such a node may have any."""

from __future__ import annotations

from collections.abc import Iterable

GLIBC = "glibc:"
BUILT = " (built on a node with "


def glibc_need(version: str, package: str, *, is_built: bool = False) -> str:
    """Returns the capability of nodes that have at least this version of glibc, which the package needs.
    `is_built`: because a node with that version has built it."""
    return f"{GLIBC}{version}:{package}{f'{BUILT}{version})' if is_built else ''}"


def unmet_capabilities(needed: Iterable[str], present: Iterable[str]) -> list[str]:
    """Returns what is needed and not present, in order."""
    existing = frozenset(present)
    installed = installed_glibc(existing)
    return sorted(
        need
        for need in needed
        if need not in existing and not (need.startswith(GLIBC) and _has_glibc(need, installed))
    )


def installed_glibc(present: Iterable[str]) -> str:
    """Returns the version of glibc that a node reports, "" if it reports none."""
    return next((item.removeprefix(GLIBC) for item in present if item.startswith(GLIBC)), "")


def glibc_phrase(need: str, present: Iterable[str]) -> str:
    """Returns what is wrong with a node that does not meet the need, as it follows the node's name."""
    version, _, package = need.removeprefix(GLIBC).partition(":")
    older = "" if BUILT in package else "an older version of the package, or "
    return (
        f"has glibc {installed_glibc(present)}, and {package} needs {version} or newer: choose {older}a node "
        "with a newer system"
    )


def _has_glibc(need: str, installed: str) -> bool:
    version = need.removeprefix(GLIBC).partition(":")[0]
    return not installed or _numbers(installed) >= _numbers(version)


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdecimal()]
