"""Splits a Dockerfile into its instructions, with the number of the line at which each begins.

It knows as much of the grammar as is needed to say what a line would do: comments, continued lines, the
escape directive and documents inside (here-documents)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainhub_launch.errors import SpecError

FIELD = "dockerfile"
MAX_BYTES = 64 * 1024
MAX_INSTRUCTIONS = 200
_DIRECTIVE = re.compile(r"#\s*([A-Za-z]+)\s*=\s*(.*?)\s*\Z")
_HERE_DOCUMENT = re.compile(r"<<-?([\"']?)([A-Za-z_][A-Za-z0-9_]*)\1")
_WITH_DOCUMENTS = ("RUN", "COPY", "ADD")


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
    def arguments(self) -> str:
        """Returns what follows the options."""
        return (
            self.rest.split(maxsplit=len(self.flags))[-1] if len(self.rest.split()) > len(self.flags) else ""
        )


def refuse(line: int, message: str) -> SpecError:
    """Returns the error about a line."""
    return SpecError(FIELD, f"line {line}: {message}")


def read_instructions(text: str) -> list[Instruction]:
    """Raises SpecError if the text is no Dockerfile."""
    size = len(text.encode(errors="surrogatepass"))
    if size > MAX_BYTES:
        raise SpecError(
            FIELD, f"has {size:,} bytes; use at most {MAX_BYTES:,}: put code into the source folder"
        )
    if "\x00" in text or (not text.isascii() and "\ufffd" in text):
        raise SpecError(FIELD, "is not text in UTF-8; choose a file that is")
    instructions = list(_instructions(text.splitlines()))
    if len(instructions) > MAX_INSTRUCTIONS:
        raise SpecError(
            FIELD,
            f"has {len(instructions)} instructions; use at most {MAX_INSTRUCTIONS}: join RUN lines with &&",
        )
    return instructions


def _instructions(lines: list[str]) -> Iterator[Instruction]:
    escape, at = _directives(lines)
    while at < len(lines):
        begin, pieces = at, []
        while at < len(lines):
            line = lines[at].strip()
            at += 1
            # Comments and empty lines between continued lines do not end them.
            if not line or line.startswith("#"):
                if pieces:
                    continue
                begin = at
                continue
            pieces.append(line.removesuffix(escape))
            if not line.endswith(escape):
                break
        if not pieces:
            return
        name, _, rest = " ".join(pieces).partition(" ")
        instruction = Instruction(name.upper(), rest.strip(), begin + 1)
        if instruction.name in _WITH_DOCUMENTS:
            at = _skip_documents(lines, at, instruction)
        yield instruction


def _directives(lines: list[str]) -> tuple[str, int]:
    """Returns the escape character and the number of lines with directives. Raises SpecError for a foreign
    frontend."""
    escape = "\\"
    for at, line in enumerate(lines):
        match = _DIRECTIVE.match(line.strip())
        if match is None:
            return escape, at
        name, value = match[1].lower(), match[2]
        if name == "syntax":
            raise refuse(
                at + 1,
                "# syntax= would load a frontend, a program that reads the file instead; remove the line",
            )
        if name == "escape":
            if value not in ("\\", "`"):
                raise refuse(at + 1, "escape must be \\ or `")
            escape = value
    return escape, len(lines)


def _skip_documents(lines: list[str], at: int, instruction: Instruction) -> int:
    """Returns the number of the line behind the documents that the instruction begins."""
    for match in _HERE_DOCUMENT.finditer(instruction.rest):
        while at < len(lines) and lines[at].strip("\t") != match[2] and lines[at] != match[2]:
            at += 1
        if at == len(lines):
            raise refuse(instruction.line, f"the text after <<{match[2]} has no end; add a line {match[2]}")
        at += 1
    return at
