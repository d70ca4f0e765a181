"""Writes a Dockerfile from a base image and packages, for people to see and edit."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from environments.images.reference import parse_reference
from environments.requirement_list import read_requirements
from trainhub_launch.errors import SpecError

BASE_FIELD, PIP_FIELD, DEBIAN_FIELD = FIELDS = ("base_image", "pip_packages", "debian_packages")
MAX_DEBIAN_PACKAGES = 200
_DEBIAN = re.compile(r"[a-z0-9][a-z0-9+.-]{1,99}(=[A-Za-z0-9.+:~-]{1,100})?\Z")


def write_dockerfile(base: str, pip_lines: Iterable[str], debian_lines: Iterable[str]) -> str:
    """Returns the text. Raises SpecError that names the field."""
    try:
        parse_reference(base)
    except SpecError as error:
        raise SpecError(BASE_FIELD, error.message) from error
    lines = [f"FROM {base.strip()}"]
    debian = _debian_packages(debian_lines)
    if debian:
        lines += [
            "RUN apt-get update \\",
            f"    && apt-get install -y --no-install-recommends {' '.join(debian)} \\",
            "    && rm -rf /var/lib/apt/lists/*",
        ]
    pip = _pip_packages(pip_lines)
    if pip:
        arguments = " ".join(shlex.quote(requirement) for requirement in pip)
        lines.append(f"RUN python3 -m pip install --no-cache-dir {arguments}")
    return "\n".join((*lines, ""))


def _pip_packages(lines: Iterable[str]) -> tuple[str, ...]:
    text = "\n".join(lines)
    if not text.strip():
        return ()
    try:
        parsed = read_requirements(text)
    except SpecError as error:
        raise SpecError(PIP_FIELD, error.message) from error
    if parsed.repositories:
        raise SpecError(PIP_FIELD, "a repository needs git in the image; write a RUN line that installs both")
    if parsed.index_url or parsed.extra_index_urls or "--hash" in text:
        raise SpecError(
            PIP_FIELD, "name packages only; write options of pip into the RUN line of the Dockerfile"
        )
    return parsed.requirements


def _debian_packages(lines: Iterable[str]) -> list[str]:
    names = [name for line in lines for name in line.partition("#")[0].split()]
    for name in names:
        if not _DEBIAN.match(name):
            raise SpecError(
                DEBIAN_FIELD, f"{name!r:.60} is no package of Debian; write names such as git or libgl1"
            )
    if len(names) > MAX_DEBIAN_PACKAGES:
        raise SpecError(DEBIAN_FIELD, f"names {len(names)} packages; use at most {MAX_DEBIAN_PACKAGES}")
    return names
