"""Which files of a source folder stay at home: the rules of the first of four ignore files, in the syntax of
.gitignore. The hub applies the same rules again; a test holds both together."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

IGNORE_FILES = (".trainhubignore", ".amlignore", ".detignore", ".gitignore")
ALWAYS = (".git/", "__pycache__/", "*.pyc", ".ipynb_checkpoints/", "__MACOSX/", ".DS_Store")


class IgnoreRules:
    """The built-in rules and then those in `lines`: the last one that matches a file, or a folder above it,
    decides."""

    def __init__(self, lines: Iterable[str] = ()) -> None:
        patterns = [_Pattern(line) for line in [*ALWAYS, *lines] if line.strip() and line[0] != "#"]
        self._patterns = [pattern for pattern in patterns if pattern.regex is not None]
        self._has_exceptions = any(pattern.is_exception for pattern in self._patterns)

    def is_ignored(self, path: str) -> bool:
        """`path`: relative to the folder, with `/`; that of a folder ends with one."""
        for pattern in reversed(self._patterns):
            if pattern.matches(path):
                return not pattern.is_exception
        return False

    def skips_folder(self, path: str) -> bool:
        """Returns whether nothing below this folder can be part of the source."""
        return not self._has_exceptions and self.is_ignored(f"{path}/")


def load_rules(folder: Path) -> IgnoreRules:
    """Returns the rules of a folder. Raises OSError if its ignore file cannot be read."""
    for name in IGNORE_FILES:
        file = folder / name
        if file.is_file():
            return IgnoreRules(file.read_text(encoding="utf-8", errors="replace").splitlines())
    return IgnoreRules()


class _Pattern:
    """A line of an ignore file. `regex` is None for a line that matches nothing."""

    def __init__(self, line: str) -> None:
        text = line.rstrip("\r\n")
        # Blanks at the end count only behind a backslash.
        while text.endswith(" ") and not text.endswith("\\ "):
            text = text[:-1]
        self.is_exception = text.startswith("!")
        text = text[1:] if self.is_exception else text
        only_folders = text.endswith("/")
        body = text.strip("/") if text.strip("/") else ""
        # A slash inside, or in front, binds the pattern to the top of the folder.
        is_bound = "/" in text.rstrip("/")
        regex = _translate(body) if body else None
        prefix = "" if is_bound else "(?:.*/)?"
        end = "/.*" if only_folders else "(?:/.*)?"
        self.regex = re.compile(f"{prefix}{regex}{end}", re.DOTALL) if regex is not None else None

    def matches(self, path: str) -> bool:
        return self.regex is not None and self.regex.fullmatch(path) is not None


def _translate(pattern: str) -> str | None:
    """Returns a pattern as a regular expression, None if it is wrong."""
    if pattern == "**":
        return ".*"
    pieces = pattern.split("/")
    result = ""
    for number, piece in enumerate(pieces):
        is_last = number == len(pieces) - 1
        if piece == "**":
            result += ".+" if is_last else "(?:.*/)?"
            continue
        translated = _translate_piece(piece)
        if translated is None:
            return None
        result += translated + ("" if is_last else "/")
    return result


def _translate_piece(piece: str) -> str | None:
    result, index = "", 0
    while index < len(piece):
        char = piece[index]
        index += 1
        if char == "*":
            result += "[^/]*"
        elif char == "?":
            result += "[^/]"
        elif char == "\\":
            if index == len(piece):
                return None
            result += re.escape(piece[index])
            index += 1
        elif char == "[":
            end = piece.find("]", index + 2 if piece[index : index + 1] in ("!", "^", "]") else index + 1)
            if end < 0:
                return None
            content = piece[index:end]
            negation = "^" if content[:1] in ("!", "^") else ""
            content = content[1:] if negation else content
            escaped = (
                content.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]").replace("^", "\\^")
            )
            result += f"[{negation}{escaped}]"
            index = end + 1
        else:
            result += re.escape(char)
    return result
