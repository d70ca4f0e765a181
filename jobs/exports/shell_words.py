"""Words of a spec as words of bash, and back. In a spec `$NAME` is a variable of the process, and `$$` a
dollar."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from trainhub_launch.expand import literal, pieces

# What bash reads as itself outside of quotes.
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
# What has no meaning within double quotes.
_QUOTED = re.compile(r"[^\"$`!\\]+")
_NAME = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")
_ANSI = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'"}
_BYTE = re.compile(r"x([0-9a-f]{2})")


def shell_word(text: str) -> str:
    """Returns a word of a command of a spec as bash has to read it."""
    parts = [f'"${{{name}}}"' if name else quote(piece) for piece, name in pieces(text) if piece or name]
    return "".join(parts) or "''"


def shell_line(words: Iterable[str]) -> str:
    return " ".join(map(shell_word, words))


def quote(text: str) -> str:
    """Returns a text as one word on one line of bash, in which nothing is replaced."""
    if text.isprintable():
        # Azure ML and dstack would replace what looks like an expression of theirs, also within quotes.
        return shlex.quote(text).replace("${{", "$''{{")
    escaped = "".join(_escape(char) for char in text)
    return f"$'{escaped}'".replace("${{", "\\x24{{")


def _escape(char: str) -> str:
    if char in "\\'":
        return f"\\{char}"
    if char.isprintable():
        return char
    # As bytes: what \u stands for depends on the locale.
    return "".join(f"\\x{byte:02x}" for byte in char.encode())


def split_words(line: str) -> list[str] | None:
    """Returns the words of a simple command of bash as words of a spec; None if only a shell understands the
    line."""
    words: list[str] = []
    at, end = 0, len(line)
    while at < end:
        if line[at] in " \t":
            at += 1
            continue
        start = at
        parts: list[WordPart] = []
        while at < end and line[at] not in " \t":
            read = _part(line, at, is_start=at == start)
            if read is None:
                return None
            more, at = read
            parts += more
        words.append(_word(parts))
    return words


class WordPart(NamedTuple):
    """Literal text, or the name of a variable."""

    text: str
    is_name: bool = False


# Parts of a word, and where the next one begins; None if only a shell understands it.
_Parts = tuple[list[WordPart], int] | None


def _word(parts: Sequence[WordPart]) -> str:
    out = []
    parts = [part for part in parts if part.text]
    for part, after in zip(parts, [*parts[1:], WordPart("")], strict=False):
        # Braces, if the next letter would be taken for a part of the name.
        is_apart = after.is_name or not re.match(r"[A-Za-z0-9_]", after.text)
        name = f"${part.text}" if is_apart else f"${{{part.text}}}"
        out.append(name if part.is_name else literal(part.text))
    return "".join(out)


def _part(line: str, at: int, *, is_start: bool) -> _Parts:
    char = line[at]
    if plain := _PLAIN.match(line, at):
        return [WordPart(plain[0])], plain.end()
    if char == "'":
        end = line.find("'", at + 1)
        return None if end < 0 else ([WordPart(line[at + 1 : end])], end + 1)
    if char == '"':
        return _double_quoted(line, at + 1)
    if line.startswith("$'", at):
        return _ansi_quoted(line, at + 2)
    if name := _NAME.match(line, at):
        return [WordPart(name[1] or name[2], is_name=True)], name.end()
    if char == "\\" and at + 1 < len(line) and line[at + 1] != "\n":
        return [WordPart(line[at + 1])], at + 2
    # `#` begins a comment and `~` names a home only at the beginning of a word; letters of other languages
    # mean nothing to a shell.
    if (char in "#~" and not is_start) or (char.isalnum() and not char.isascii()) or char in "^]":
        return [WordPart(char)], at + 1
    return None


def _double_quoted(line: str, at: int) -> _Parts:
    parts: list[WordPart] = []
    while at < len(line):
        char = line[at]
        if char == '"':
            return parts, at + 1
        if plain := _QUOTED.match(line, at):
            parts.append(WordPart(plain[0]))
            at = plain.end()
        elif name := _NAME.match(line, at):
            parts.append(WordPart(name[1] or name[2], is_name=True))
            at = name.end()
        elif char in "`!" or line[at : at + 2] in ("$(", "${"):
            return None
        else:
            is_escape = char == "\\" and line[at + 1 : at + 2] in ("$", "`", '"', "\\")
            at += is_escape
            parts.append(WordPart(line[at]))
            at += 1
    return None


def _ansi_quoted(line: str, at: int) -> _Parts:
    out = bytearray()
    while at < len(line) and line[at] != "'":
        if line[at] != "\\":
            out += line[at].encode()
            at += 1
            continue
        escape = line[at + 1 : at + 2]
        if byte := _BYTE.match(line, at + 1):
            out.append(int(byte[1], 16))
            at = byte.end()
        elif escape in _ANSI:
            out += _ANSI[escape].encode()
            at += 2
        else:
            return None
    try:
        return ([WordPart(out.decode())], at + 1) if at < len(line) else None
    except UnicodeDecodeError:
        return None
