"""Reads single lines of a requirements file."""

from __future__ import annotations

import re

from packaging.requirements import InvalidRequirement, Requirement

from environments.repositories.repository_address import PREFIX, with_package_name
from trainhub_launch.errors import SpecError

FIELD = "requirements"
PACKAGES_ONLY = "name a package and its version, such as numpy==2.1.0"
_CONDA = re.compile(r"(name|channels|dependencies)\s*:")
_COMMENT = re.compile(r"(^|\s)#.*$")


def logical_lines(text: str) -> list[tuple[int, str]]:
    """Returns the lines that are neither empty nor comments, each with its number; a line that ends with a
    backslash goes on in the next one, as in pip."""
    lines: list[tuple[int, str]] = []
    partial, start = "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        start = start or number
        if line.endswith("\\") and not line.lstrip().startswith("#"):
            partial += f"{line[:-1]} "
            continue
        whole = _COMMENT.sub("", partial + line).strip()
        if whole:
            lines.append((start, whole))
        partial, start = "", 0
    whole = _COMMENT.sub("", partial).strip()
    return [*lines, (start, whole)] if whole else lines


def split_option(line: str) -> tuple[str, str]:
    """Returns the option and its value of `--name value`, `--name=value` or `-xvalue`."""
    match = re.match(r"(--[A-Za-z-]+)(?:\s*=\s*|\s+|$)(.*)\Z", line) or re.match(
        r"(-[A-Za-z])\s*(.*)\Z", line
    )
    return (match[1], match[2].strip()) if match else (line.split(maxsplit=1)[0], "")


def read_requirement(number: int, text: str) -> Requirement:
    """Returns the requirement in the line, which may name a repository. Raises SpecError."""
    try:
        text = with_package_name(text)
    except ValueError as error:
        raise requirement_error(number, str(error)) from error
    if re.match(r"[./~]|[A-Za-z]:\\|file:", text) or re.search(
        r"\.(whl|tar\.gz|zip)\Z", text.split(" ", maxsplit=1)[0]
    ):
        raise requirement_error(
            number,
            "a file or folder is not on the hub; put its code into the run's source folder (if it is in src, "
            f"give the run the variable PYTHONPATH=src), or {PACKAGES_ONLY}",
        )
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        if _CONDA.match(text):
            raise requirement_error(
                number, "this is the YAML of conda; make an environment of kind conda of it, on the tab Conda"
            ) from error
        raise requirement_error(number, f"{text!r:.100} is not a requirement; {PACKAGES_ONLY}") from error
    if requirement.url and not requirement.url.startswith(PREFIX):
        raise requirement_error(
            number, f"an address of a file cannot be installed here; {PACKAGES_ONLY}, from an index"
        )
    return requirement


def requirement_error(number: int, message: str) -> SpecError:
    """Returns the error about the line."""
    return SpecError(FIELD, f"line {number}: {message}")
