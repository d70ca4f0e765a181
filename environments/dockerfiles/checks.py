"""What a Dockerfile may contain here: there is no folder beside it (no build context), and no part of it gets
more rights than others, or code that reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from environments.dockerfiles.bases import SCRATCH, check_image, expand_arguments, read_arguments
from environments.dockerfiles.instructions import FIELD, Instruction, line_error, read_instructions
from trainhub_launch.errors import SpecError

KNOWN = (
    "ARG",
    "CMD",
    "COPY",
    "ENTRYPOINT",
    "ENV",
    "EXPOSE",
    "FROM",
    "HEALTHCHECK",
    "LABEL",
    "MAINTAINER",
    "RUN",
    "SHELL",
    "STOPSIGNAL",
    "USER",
    "VOLUME",
    "WORKDIR",
)
_INSTEAD = {
    "ONBUILD": "has no effect, because nothing is built from this image; write the instruction itself",
    "ADD": (
        "is refused: there is no folder beside the Dockerfile, and addresses would be fetched outside of the "
        "build; put code into the run's source folder, and fetch files in a RUN line"
    ),
}
_STAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*\Z")
_FLAGS = {"FROM": ("platform",), "RUN": ("mount", "network"), "COPY": ("from", "chown", "chmod")}
_PLATFORM = "linux/amd64"
_MOUNTS = ("cache", "tmpfs", "bind")


@dataclass(frozen=True)
class DockerfileContent:
    """`bases`: the images that it begins with, as references; `images`: these, and those that it copies from
    or mounts."""

    bases: tuple[str, ...]
    images: tuple[str, ...]
    instructions: tuple[Instruction, ...]


def read_dockerfile(text: str) -> DockerfileContent:
    """Raises SpecError with the line and the remedy if no image can be built from it here."""
    instructions = read_instructions(text)
    values = read_arguments(instructions)
    stages: list[str] = []
    bases: list[str] = []
    images: list[str] = []
    for instruction in instructions:
        _check_name(instruction, is_first=not stages)
        images += _check_flags(instruction, stages)
        if instruction.name == "FROM":
            base, name = _from(instruction, values)
            if base.lower() not in stages and base != SCRATCH:
                check_image(instruction, base)
                bases.append(base)
            stages.append(name.lower())
        elif instruction.name == "COPY":
            images += _check_copy(instruction, stages)
    if not stages:
        raise SpecError(FIELD, "has no FROM: begin with the image to build on, such as FROM python:3.11")
    return DockerfileContent(
        tuple(dict.fromkeys(bases)), tuple(dict.fromkeys((*bases, *images))), tuple(instructions)
    )


def _check_name(instruction: Instruction, *, is_first: bool) -> None:
    name = instruction.name
    if name in _INSTEAD:
        raise line_error(instruction.line, f"{name} {_INSTEAD[name]}")
    if name not in KNOWN:
        raise line_error(instruction.line, f"{name!r:.40} is no instruction; use one of {', '.join(KNOWN)}")
    if is_first and name not in ("FROM", "ARG"):
        raise line_error(instruction.line, f"FROM comes first; put it before {name}")
    if not instruction.rest:
        raise line_error(instruction.line, f"{name} needs something after it")


def _from(instruction: Instruction, values: Mapping[str, str | None]) -> tuple[str, str]:
    """Returns the image or stage, and the name of the new stage or ""."""
    words = instruction.arguments
    if len(words) not in (1, 3) or (len(words) == 3 and words[1].lower() != "as"):
        raise line_error(instruction.line, "write FROM IMAGE, or FROM IMAGE AS NAME")
    name = words[2] if len(words) == 3 else ""
    if name and not _STAGE.match(name):
        raise line_error(
            instruction.line, f"{name!r:.60} is no name of a stage; use letters, digits, '_', '.' and '-'"
        )
    return expand_arguments(instruction, words[0], values), name


def _check_flags(instruction: Instruction, stages: list[str]) -> list[str]:
    """Returns the images that the instruction mounts."""
    images: list[str] = []
    if instruction.name == "HEALTHCHECK":
        return images
    for flag in instruction.flags:
        name, _, value = flag.removeprefix("--").partition("=")
        if name not in _FLAGS.get(instruction.name, ()):
            raise line_error(instruction.line, f"{flag:.60} is not supported; leave it out")
        if name == "platform" and value != _PLATFORM:
            raise line_error(instruction.line, f"nodes run {_PLATFORM}; leave --platform out")
        if name == "network" and value not in ("default", "none"):
            raise line_error(instruction.line, f"{flag:.40} would let the build reach the node; leave it out")
        if name == "mount":
            images += _check_mount(instruction, value, stages)
    return images


def _check_mount(instruction: Instruction, value: str, stages: list[str]) -> list[str]:
    if set(value) & set("$\"'\\"):
        raise line_error(instruction.line, "--mount takes no variables and quotation marks; write it out")
    parts = dict(part.partition("=")[::2] for part in value.split(","))
    kind = parts.get("type", "bind")
    if kind in ("ssh", "secret"):
        raise line_error(
            instruction.line,
            f"--mount=type={kind} is not supported: a build gets no secrets; fetch such files in the run, "
            "with a secret of the workspace",
        )
    if kind not in _MOUNTS:
        raise line_error(instruction.line, f"--mount=type={kind:.40} is not supported; leave it out")
    if kind == "bind" and "from" not in parts:
        raise line_error(
            instruction.line, "--mount=type=bind needs from=STAGE: there are no files beside the Dockerfile"
        )
    return _check_source(instruction, parts["from"], stages) if "from" in parts else []


def _check_copy(instruction: Instruction, stages: list[str]) -> list[str]:
    """Returns the images that it copies from."""
    sources = [flag.partition("=")[2] for flag in instruction.flags if flag.startswith("--from=")]
    if not sources:
        raise line_error(
            instruction.line,
            "COPY has no files to copy, because there is no folder beside the Dockerfile; put code into the "
            "run's source folder, or copy from another stage with --from=NAME",
        )
    return [image for source in sources for image in _check_source(instruction, source, stages)]


def _check_source(instruction: Instruction, source: str, stages: list[str]) -> list[str]:
    """Returns the image; none if it is an earlier stage. Raises SpecError if it is neither."""
    is_stage = source.lower() in stages or (source.isdecimal() and int(source) < len(stages) - 1)
    if source and is_stage:
        return []
    check_image(instruction, source)
    return [source]
