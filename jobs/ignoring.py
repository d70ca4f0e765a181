"""Which files of a source folder stay behind (S38): the first of three ignore files, in the syntax of .gitignore."""

from __future__ import annotations

from collections.abc import Callable

from pathspec import GitIgnoreSpec

IGNORE_FILES = (".trainhubignore", ".amlignore", ".gitignore")
ALWAYS = (".git/", "__pycache__/", "*.pyc", ".ipynb_checkpoints/", "__MACOSX/", ".DS_Store")
MAX_BYTES = 1024 * 1024


class Rules:
    """What is left out, and by which file's word ("" = only what is never taken)."""

    def __init__(self, lines: tuple[str, ...] = (), file: str = "") -> None:
        self.file = file
        # A folder's own rules come last, so that `!name` can take back what is left out by habit.
        self._spec = GitIgnoreSpec.from_lines([*ALWAYS, *lines])

    def leave_out(self, path: str) -> bool:
        return self._spec.match_file(path)


def rules(read: Callable[[str], bytes | None]) -> Rules:
    """The rules of a folder whose files `read` returns by name (None = there is no such file)."""
    for name in IGNORE_FILES:
        content = read(name)
        if content is not None:
            return Rules(tuple(content[:MAX_BYTES].decode(errors="replace").splitlines()), name)
    return Rules()
