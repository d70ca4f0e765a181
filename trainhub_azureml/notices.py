"""Sentences to the user on stderr, which never mix with what a script prints."""

from __future__ import annotations

import sys

_printed: set[str] = set()


def warn(sentence: str) -> None:
    """Prints a sentence once in the life of the process."""
    if sentence in _printed:
        return
    _printed.add(sentence)
    print(f"TrainHub: {sentence}", file=sys.stderr, flush=True)
