"""What a Dockerfile may contain here: there is no folder beside it (no build context), and no part of it gets
more rights than others, or code that reads it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from environments.dockerfiles.instructions import FIELD, Instruction, read_instructions, refuse
from environments.images.reference import parse_reference
from trainhub_launch.errors import SpecError

KNOWN = (
    "ADD",
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
SCRATCH = "scratch"
_STAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*\Z")
_REMOTE = ("https://", "http://")
_FLAGS = {
    "FROM": ("platform",),
    "RUN": ("mount", "network"),
    "COPY": ("from", "chown", "chmod"),
    "ADD": ("chown", "chmod"),
}
_PLATFORM = "linux/amd64"
_MOUNTS = ("cache", "tmpfs", "bind")


@dataclass(frozen=True)
class DockerfileContent:
    """`bases`: the images that it begins with, as they are written; `is_variable`: one of them depends on an
    ARG."""

    bases: tuple[str, ...]
    instructions: tuple[Instruction, ...]


def read_dockerfile(text: str) -> DockerfileContent:
    """Raises SpecError with the line and the remedy if no image can be built from it here."""
    instructions = read_instructions(text)
    stages: set[str] = set()
    bases: list[str] = []
    count = 0
    for instruction in instructions:
        if instruction.name not in KNOWN:
            raise refuse(
                instruction.line,
                f"{instruction.name!r:.40} is not an instruction; use one of {', '.join(KNOWN)}"
                if instruction.name != "ONBUILD"
                else "ONBUILD has no effect: nothing is built from this image; write the instruction itself",
            )
        if not count and instruction.name not in ("FROM", "ARG"):
            raise refuse(instruction.line, f"FROM comes first; put it before {instruction.name}")
        if not instruction.rest:
            raise refuse(instruction.line, f"{instruction.name} needs something after it")
        _check_flags(instruction)
        if instruction.name == "FROM":
            base, name = _from(instruction)
            if base.lower() not in stages and base != SCRATCH:
                bases.append(base)
            stages |= {name.lower()} if name else set()
            count += 1
        elif instruction.name == "COPY":
            _check_copy(instruction, stages, count)
        elif instruction.name == "ADD":
            _check_add(instruction)
    if not count:
        raise SpecError(FIELD, "has no FROM: begin with the image to build on, such as FROM python:3.11")
    return DockerfileContent(tuple(dict.fromkeys(bases)), tuple(instructions))


def _from(instruction: Instruction) -> tuple[str, str]:
    """Returns the image or stage, and the name of the new stage or ""."""
    words = instruction.arguments.split()
    if len(words) not in (1, 3) or (len(words) == 3 and words[1].lower() != "as"):
        raise refuse(instruction.line, "write FROM IMAGE, or FROM IMAGE AS NAME")
    name = words[2] if len(words) == 3 else ""
    if name and not _STAGE.match(name):
        raise refuse(
            instruction.line, f"{name!r:.60} is no name of a stage; use letters, digits, '_', '.' and '-'"
        )
    if "$" not in words[0] and words[0] != SCRATCH:
        try:
            parse_reference(words[0])
        except SpecError as error:
            raise refuse(instruction.line, error.message) from error
    return words[0], name


def _check_flags(instruction: Instruction) -> None:
    for flag in instruction.flags:
        name, _, value = flag.removeprefix("--").partition("=")
        if instruction.name == "HEALTHCHECK":
            continue
        if name not in _FLAGS.get(instruction.name, ()):
            raise refuse(instruction.line, f"{flag:.60} is not supported; leave it out")
        if name == "platform" and value != _PLATFORM:
            raise refuse(instruction.line, f"nodes run {_PLATFORM}; leave --platform out")
        if name == "network" and value not in ("default", "none"):
            raise refuse(instruction.line, "--network=host would let the build reach the node; leave it out")
        if name == "mount":
            _check_mount(instruction, value)


def _check_mount(instruction: Instruction, value: str) -> None:
    parts = dict(part.partition("=")[::2] for part in value.split(","))
    kind = parts.get("type", "bind")
    if kind in ("ssh", "secret"):
        raise refuse(
            instruction.line,
            f"--mount=type={kind} is not supported: a build gets no secrets; fetch such files in the run, "
            "with a secret of the workspace",
        )
    if kind not in _MOUNTS:
        raise refuse(instruction.line, f"--mount=type={kind:.40} is not supported; leave it out")
    if kind == "bind" and "from" not in parts:
        raise refuse(
            instruction.line, "--mount=type=bind needs from=STAGE: there are no files beside the Dockerfile"
        )


def _check_copy(instruction: Instruction, stages: set[str], count: int) -> None:
    if "<<" in instruction.arguments:
        return
    source = next((flag.partition("=")[2] for flag in instruction.flags if flag.startswith("--from=")), "")
    if not source:
        raise refuse(
            instruction.line,
            "COPY has no files to copy, because there is no folder beside the Dockerfile; put code into the "
            "run's source folder, or copy from another stage with --from=NAME",
        )
    if source.lower() not in stages and not (source.isdecimal() and int(source) < count):
        try:
            parse_reference(source)
        except SpecError as error:
            raise refuse(instruction.line, f"--from: {error.message}") from error


def _check_add(instruction: Instruction) -> None:
    sources = instruction.arguments.strip("[]").replace('"', " ").replace(",", " ").split()[:-1]
    if "<<" in instruction.arguments:
        return
    if not sources or not all(source.startswith(_REMOTE) for source in sources):
        raise refuse(
            instruction.line,
            "ADD can only fetch https:// addresses, because there is no folder beside the Dockerfile; put "
            "code into the run's source folder",
        )
    if not all(source.startswith("https://") for source in sources):
        raise refuse(instruction.line, "ADD fetches over https:// only; change the address")
