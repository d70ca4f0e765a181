"""Words of a spec as words of bash, and back. In a spec `$NAME` is a variable of the process, and `$$` a
dollar."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from trainhub_launch.expand import literal, pieces

# What bash reads as itself outside of quotes.
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
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
        word = ""
        while at < end and line[at] not in " \t":
            part = _part(line, at, is_start=at == start)
            if part is None:
                return None
            text, at = part
            word = _join(word, text)
        words.append(word)
    return words


def _join(word: str, text: str) -> str:
    """Returns both, so that no letter of `text` becomes part of a variable's name."""
    match = re.search(r"(?:^|[^$])(?:\$\$)*\$([A-Za-z_][A-Za-z0-9_]*)\Z", word)
    if match and re.match(r"[A-Za-z0-9_]", text):
        name = match[1]
        return f"{word[: -len(name)]}{{{name}}}{text}"
    return word + text


def _part(line: str, at: int, *, is_start: bool) -> tuple[str, int] | None:
    """Returns the part of a word that begins there, as a spec writes it, and where the next one begins."""
    char = line[at]
    if plain := _PLAIN.match(line, at):
        return plain[0], plain.end()
    if char == "'":
        end = line.find("'", at + 1)
        return None if end < 0 else (literal(line[at + 1 : end]), end + 1)
    if char == '"':
        return _double_quoted(line, at + 1)
    if line.startswith("$'", at):
        return _ansi_quoted(line, at + 2)
    if name := _NAME.match(line, at):
        return f"${name[1] or name[2]}", name.end()
    if char == "\\" and at + 1 < len(line) and line[at + 1] != "\n":
        return literal(line[at + 1]), at + 2
    # `#` begins a comment and `~` names a home only at the beginning of a word; letters of other languages
    # mean nothing to a shell.
    if (char in "#~" and not is_start) or (char.isalnum() and not char.isascii()) or char in "^]":
        return char, at + 1
    return None


def _double_quoted(line: str, at: int) -> tuple[str, int] | None:
    out = ""
    while at < len(line):
        char = line[at]
        if char == '"':
            return out, at + 1
        if char == "$" and (name := _NAME.match(line, at)):
            out = _join(out, f"${name[1] or name[2]}")
            at = name.end()
            continue
        if char in "`!" or line[at : at + 2] in ("$(", "${"):
            return None
        if char == "\\" and line[at + 1 : at + 2] in ("$", "`", '"', "\\"):
            at += 1
            char = line[at]
        out = _join(out, literal(char))
        at += 1
    return None


def _ansi_quoted(line: str, at: int) -> tuple[str, int] | None:
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
        return (literal(out.decode()), at + 1) if at < len(line) else None
    except UnicodeDecodeError:
        return None
