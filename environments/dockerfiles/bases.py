"""The images that a Dockerfile takes something from: references to registries, never to files or stores of
the node, which engines would read, too."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from environments.dockerfiles.instructions import Instruction, line_error
from environments.images.reference import parse_reference
from trainhub_launch.errors import SpecError

SCRATCH = "scratch"
# What engines take for files and stores, if it stands before a colon.
_TRANSPORTS = (
    "containers-storage",
    "dir",
    "docker",
    "docker-archive",
    "docker-daemon",
    "oci",
    "oci-archive",
    "ostree",
    "sif",
    "tarball",
)
_VARIABLE = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")


def check_image(instruction: Instruction, image: str) -> None:
    """Raises SpecError if this is no reference to a registry."""
    name, colon, _ = image.partition(":")
    if colon and name.lower() in _TRANSPORTS:
        raise line_error(instruction.line, f"{name}: names files of the node; name an image of a registry")
    try:
        parse_reference(image)
    except SpecError as error:
        raise line_error(instruction.line, error.message) from error


def read_arguments(instructions: list[Instruction]) -> dict[str, str | None]:
    """Returns the default of each ARG, "" without one; None for one with several defaults, which cannot be
    used in FROM."""
    values: dict[str, str | None] = {}
    for instruction in instructions:
        if instruction.name != "ARG":
            continue
        try:
            words = shlex.split(instruction.rest)
        except ValueError as error:
            raise line_error(instruction.line, "has a quotation mark without its other; add it") from error
        for word in words:
            name, has_value, value = word.partition("=")
            if has_value and values.get(name, value) not in ("", value):
                values[name] = None
            elif has_value or name not in values:
                values.setdefault(name, value)
                values[name] = values[name] or value
    return values


def expand_arguments(instruction: Instruction, text: str, values: Mapping[str, str | None]) -> str:
    """Returns the image that FROM names, with the defaults of ARG. Raises SpecError if it is not certain."""

    def value_of(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        value = values.get(name, "")
        if value is None:
            raise line_error(instruction.line, f"ARG {name} has several defaults; FROM needs exactly one")
        if not value or "$" in value:
            raise line_error(
                instruction.line, f"${name} has no plain default; write ARG {name}=VALUE before FROM"
            )
        return value

    expanded = _VARIABLE.sub(value_of, text)
    if "$" in expanded:
        raise line_error(instruction.line, "FROM understands only $NAME and ${NAME}; write the image out")
    return expanded
