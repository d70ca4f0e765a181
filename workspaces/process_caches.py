"""Registers the caches of this process, so that tests can empty all of them at once."""

from __future__ import annotations

from collections.abc import Callable

_clear_functions: list[Callable[[], None]] = []


def register(clear: Callable[[], None]) -> Callable[[], None]:
    """Registers the function that empties a module's cache; usable as a decorator."""
    _clear_functions.append(clear)
    return clear


def clear_all() -> None:
    for clear in _clear_functions:
        clear()
