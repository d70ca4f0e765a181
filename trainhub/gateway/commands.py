"""Parses the first command of a client of Valkey, which must be a sign-in, from the bytes on the wire."""

from __future__ import annotations

MAX_BYTES = 4096
MAX_WORDS = 16
ARRAY, BULK = b"*", b"$"


class BadCommand(Exception):
    """The bytes are not a command with which a client may begin."""


def parse_command(data: bytes) -> list[bytes] | None:
    """Returns the words of the command at the beginning of `data`, or None while it is incomplete. Raises
    BadCommand for anything else."""
    lines = data.split(b"\r\n")
    count = _number(lines[0], ARRAY, MAX_WORDS, is_complete=len(lines) > 1)
    if count is None:
        return None
    words: list[bytes] = []
    at = len(lines[0]) + 2
    for _ in range(count):
        head, mark, rest = data[at:].partition(b"\r\n")
        length = _number(head, BULK, MAX_BYTES, is_complete=bool(mark))
        if length is None or len(rest) < length + 2:
            # An incomplete command must not grow without limit while more bytes are awaited.
            _check_size(data)
            return None
        if rest[length : length + 2] != b"\r\n":
            raise BadCommand
        words.append(rest[:length])
        at += len(head) + 2 + length + 2
    return words


def user_of(command: list[bytes]) -> str:
    """Returns the user of a sign-in: AUTH user password, or HELLO version AUTH user password. Raises
    BadCommand for any other command."""
    names = [word.upper() for word in command]
    if names[:1] == [b"AUTH"] and len(command) == 3:
        return _text(command[1])
    if names[:1] == [b"HELLO"] and b"AUTH" in names[2:-2]:
        return _text(command[names.index(b"AUTH", 2) + 1])
    raise BadCommand


def _number(line: bytes, kind: bytes, most: int, *, is_complete: bool) -> int | None:
    """Returns the number in the line, or None while the line is incomplete. Raises BadCommand."""
    # A number within the limits has at most 4 digits, so a longer line is wrong before its end has come.
    if line[:1] not in (b"", kind) or len(line) > 8:
        raise BadCommand
    if not is_complete:
        return None
    if not line[1:].isdigit() or not 0 < int(line[1:]) <= most:
        raise BadCommand
    return int(line[1:])


def _check_size(data: bytes) -> None:
    if len(data) > MAX_BYTES:
        raise BadCommand


def _text(word: bytes) -> str:
    try:
        return word.decode("ascii")
    except UnicodeDecodeError as error:
        raise BadCommand from error
