"""The files of a source folder to ignore, by the first of four ignore files in the syntax of .gitignore."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable

from pathspec import GitIgnoreSpec

from jobs.sources.source_files import SnapshotError

IGNORE_FILES = (".trainhubignore", ".amlignore", ".detignore", ".gitignore")
ALWAYS = (".git/", "__pycache__/", "*.pyc", ".ipynb_checkpoints/", "__MACOSX/", ".DS_Store")
MAX_BYTES = 1024 * 1024
STARS = re.compile(r"\*+")
MAX_STARS, MAX_DOUBLE_STARS = 4, 2
# Time limit for matching. Patterns become regular expressions, and a hostile one could block the hub.
MAX_MATCH_S = 10.0


class IgnoreRules:
    """The rules of one ignore file; `file` is its name, "" if only the built-in rules apply."""

    def __init__(self, lines: tuple[str, ...] = (), file: str = "") -> None:
        self.file = file
        self._remaining_s = MAX_MATCH_S
        for number, line in enumerate(lines, 1):
            stars = [
                run_of_stars for run_of_stars in STARS.findall(line) if not line.lstrip().startswith("#")
            ]
            if (
                len(stars) > MAX_STARS
                or sum(len(stars_in_row) > 1 for stars_in_row in stars) > MAX_DOUBLE_STARS
            ):
                allowed = f"use at most {MAX_STARS}, {MAX_DOUBLE_STARS} of them double"
                raise SnapshotError(f"{file}, line {number}: {line[:100]!r} has too many stars; {allowed}")
        # A folder's own rules come last, so that `!name` can override the built-in ones.
        try:
            self._spec = GitIgnoreSpec.from_lines([*ALWAYS, *lines])
        except (ValueError, re.error) as error:
            raise SnapshotError(
                f"{file}, {_first_wrong(lines)} is not a pattern; correct that line or remove it"
            ) from error

    def is_ignored(self, path: str) -> bool:
        started_at = time.monotonic()
        is_match = self._spec.match_file(path)
        self._remaining_s -= time.monotonic() - started_at
        if self._remaining_s < 0:
            raise SnapshotError(
                f"the patterns of {self.file} take too long on its files; use fewer and simpler ones"
            )
        return is_match


def load_rules(read: Callable[[str], Iterable[bytes] | None]) -> IgnoreRules:
    """Returns the rules of a folder. `read` returns a file's content by name, or None if it does not
    exist."""
    for name in IGNORE_FILES:
        pieces = read(name)
        if pieces is not None:
            content = bytearray()
            for piece in pieces:
                content += piece
                if len(content) > MAX_BYTES:
                    raise SnapshotError(
                        f"{name} is larger than 1 MiB; name folders instead of single files in it"
                    )
            return IgnoreRules(tuple(content.decode(errors="replace").splitlines()), name)
    return IgnoreRules()


def _first_wrong(lines: Iterable[str]) -> str:
    for number, line in enumerate(lines, 1):
        try:
            GitIgnoreSpec.from_lines([line])
        except (ValueError, re.error):
            return f"line {number}: {line[:100]!r}"
    return "a line of it"
