"""Splits a Dockerfile into its instructions, with the number of the line at which each begins.

The engines of nodes read the same text with parsers that differ in details. What one of them could read as
another instruction is refused, so that no line escapes the checks: documents inside (<<EOF), other escape
characters, comments that are indented within a continued line, and characters that cannot be seen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainhub_launch.errors import SpecError

FIELD = "dockerfile"
MAX_BYTES = 64 * 1024
MAX_INSTRUCTIONS = 200
ESCAPE = "\\"
_DIRECTIVE = re.compile(r"\s*#\s*(syntax|escape|check)\s*=", re.IGNORECASE)
_DOCUMENT = re.compile(r"<<-?[\"']?[A-Za-z_]")
_WITH_DOCUMENTS = ("RUN", "COPY", "ADD")
_BLANK = " \t"


@dataclass(frozen=True)
class Instruction:
    """`name`: in capitals; `rest`: what follows it, continued lines joined; `line`: from 1."""

    name: str
    rest: str
    line: int

    @property
    def flags(self) -> tuple[str, ...]:
        """Returns the options before the arguments, such as `--mount=type=ssh`."""
        words = self.rest.split()
        return tuple(words[: next((at for at, word in enumerate(words) if word[:2] != "--"), len(words))])

    @property
    def arguments(self) -> tuple[str, ...]:
        """Returns the words that follow the options."""
        return tuple(self.rest.split()[len(self.flags) :])


def line_error(line: int, message: str) -> SpecError:
    """Returns the error about a line."""
    return SpecError(FIELD, f"line {line}: {message}")


def read_instructions(text: str) -> list[Instruction]:
    """Raises SpecError if the text is no Dockerfile that every engine reads alike."""
    size = len(text.encode(errors="surrogatepass"))
    if size > MAX_BYTES:
        raise SpecError(
            FIELD, f"has {size:,} bytes; use at most {MAX_BYTES:,}: put code into the source folder"
        )
    lines = text.replace("\r\n", "\n").split("\n")
    for number, line in enumerate(lines, 1):
        _check_line(number, line)
    instructions = list(_instructions(lines))
    if len(instructions) > MAX_INSTRUCTIONS:
        raise SpecError(
            FIELD,
            f"has {len(instructions)} instructions; use at most {MAX_INSTRUCTIONS}: join RUN lines with &&",
        )
    return instructions


def _check_line(number: int, line: str) -> None:
    unseen = next((sign for sign in line if not (sign.isprintable() or sign == "\t")), "")
    if unseen:
        raise line_error(number, f"has the character {unseen!a}, which cannot be seen; remove it")
    directive = _DIRECTIVE.match(line)
    name = directive[1].lower() if directive else ""
    if name == "syntax":
        raise line_error(
            number, "# syntax= would load a frontend, a program that reads the file instead; remove the line"
        )
    if name:
        raise line_error(number, f"# {name}= is not supported; remove the line, and continue lines with \\")
    if line.rstrip(_BLANK).endswith(ESCAPE * 2):
        raise line_error(number, "ends with two backslashes, which engines read differently; use one")


def _instructions(lines: list[str]) -> Iterator[Instruction]:
    at = 0
    while at < len(lines):
        begin = at
        pieces: list[str] = []
        while at < len(lines):
            line = lines[at].strip(_BLANK)
            at += 1
            if line.startswith("#"):
                if pieces and not lines[at - 1].startswith("#"):
                    raise line_error(at, "is a comment within a continued line; begin it in the first column")
                continue
            if not line:
                continue
            if not pieces:
                begin = at
            pieces.append(line.removesuffix(ESCAPE))
            if not line.endswith(ESCAPE):
                break
        if not pieces:
            return
        name, rest = [*" ".join(pieces).split(maxsplit=1), ""][:2]
        instruction = Instruction(name.upper(), rest.strip(), begin)
        if instruction.name in _WITH_DOCUMENTS and _DOCUMENT.search(instruction.rest):
            raise line_error(
                begin, "documents (<<EOF) are not supported by all engines; join commands with && instead"
            )
        yield instruction
