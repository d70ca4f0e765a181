"""What a command line means that another launcher gives to a shell; a hub starts programs without one."""

from __future__ import annotations

import re
import shlex

# What only a shell understands: lists of commands, pipes, redirections, substitutions, `$` within single
# quotes, patterns of file names, and variables that are set in front of a program.
_SHELL = re.compile(r"""[;|<>`\n&*]|\$\(|\$\{[A-Za-z_0-9]*[^A-Za-z_0-9}]|'[^']*\$[^']*'|(?:^|\s)~/""")
_FIRST_WORD = re.compile(
    r"\s*(?:[A-Za-z_][A-Za-z0-9_]*=|(?:export|cd|source|set|exec|eval|if|for|while|\.)\s)"
)


def needs_shell(line: str) -> bool:
    """Returns whether only a shell understands the line."""
    if _SHELL.search(line) or _FIRST_WORD.match(line):
        return True
    try:
        shlex.split(line)
    except ValueError:
        return True  # a quote without its end: the shell says what it thinks of it
    return False


def split_line(line: str) -> list[str]:
    """Returns the program and its arguments; a shell with the line, where it needs one."""
    line = line.strip()
    if needs_shell(line):
        return ["bash", "-c", literal(line)]
    return shlex.split(line)


def literal(text: str) -> str:
    """Returns a text of which the hub replaces nothing: `$$` is a dollar for it, and `$NAME` a variable."""
    return text.replace("$", "$$")
