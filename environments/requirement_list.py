"""Reads the lines of a requirements file, and refuses by number what an environment cannot be made from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from environments.indexes.index_address import IndexCredentials, read_index_address
from environments.repositories.repository_address import Repository, read_repository
from environments.requirement_line import FIELD as FIELD  # noqa: PLC0414  # exported
from environments.requirement_line import (
    PACKAGES_ONLY,
    logical_lines,
    read_requirement,
    requirement_error,
    split_option,
)
from trainhub_launch.errors import SpecError

MAX_BYTES = 512 * 1024
MAX_REQUIREMENTS = 1000
MAX_INDEXES = 10
MAX_REPOSITORIES = 5

_HASH = re.compile(r"\s--hash=(\S*)")
_SHA256 = re.compile(r"sha256:[0-9a-f]{64}\Z")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\Z")
_INDEX_OPTIONS = {
    "-i": "--index-url",
    "--index-url": "--index-url",
    "--pypi-url": "--index-url",
    "--extra-index-url": "--extra-index-url",
}
_EDITABLE = (
    "remove the line. A run imports what lies beside its script; for another folder of its source, such as "
    "src, give the run the variable PYTHONPATH=src. Name what that code needs in lines of its own"
)
# Option -> what to do instead.
_REMEDIES = {
    "-e": _EDITABLE,
    "--editable": _EDITABLE,
    "-r": "copy the lines of that file to this place",
    "--requirement": "copy the lines of that file to this place",
    "-c": "write its conditions as lines of their own, such as numpy<2",
    "--constraint": "write its conditions as lines of their own, such as numpy<2",
    "-f": "name an index with --index-url or --extra-index-url",
    "--find-links": "name an index with --index-url or --extra-index-url",
    "--no-index": "remove the line; packages come from an index",
    "--only-binary": "remove the line; only wheels are installed anyway",
    "--prefer-binary": "remove the line; only wheels are installed anyway",
    "--require-hashes": "remove the line; every package is locked with its hashes anyway",
    "--pre": "remove the line, and name the version, such as torch==2.14.0rc1",
    "--trusted-host": "remove the line, and name the index with https://",
}


@dataclass(frozen=True)
class RequirementList:
    """`requirements`: one for each package, without hashes. `hashes`: those that the lines allow, by the
    package's normalised name. `index_url`: instead of the hub's index, or ""; `extra_index_urls`: beside
    it. `credentials`: how the hub signs in at those addresses that name secrets. `no_binary`: the normalised
    names of the packages that a node builds from source. `repositories`: the git repositories that have
    packages, by their normalised names."""

    requirements: tuple[str, ...]
    index_url: str = ""
    extra_index_urls: tuple[str, ...] = ()
    hashes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    credentials: Mapping[str, IndexCredentials] = field(default_factory=dict)
    no_binary: frozenset[str] = frozenset()
    repositories: Mapping[str, Repository] = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        """Returns the normalised names of the packages."""
        return frozenset(canonicalize_name(Requirement(text).name) for text in self.requirements)

    @property
    def index_lines(self) -> tuple[str, ...]:
        """Returns the lines that name the indexes, as pip reads them."""
        main = (f"--index-url {self.index_url}",) if self.index_url else ()
        return (*main, *(f"--extra-index-url {url}" for url in self.extra_index_urls))


def read_requirements(text: str) -> RequirementList:
    """Returns what the text of a requirements file asks for. Raises SpecError, which names the line."""
    if len(text.encode(errors="replace")) > MAX_BYTES:
        raise SpecError(FIELD, f"must have at most {MAX_BYTES // 1024} KiB; list only what the code imports")
    if "\x00" in text:
        raise SpecError(FIELD, "must not contain a NUL character; remove it")
    reader = _Reader()
    for number, line in logical_lines(text):
        reader.read(number, line)
    if not reader.requirements:
        raise SpecError(FIELD, f"name at least one package; {PACKAGES_ONLY}")
    if len(reader.requirements) > MAX_REQUIREMENTS:
        raise SpecError(
            FIELD, f"must name at most {MAX_REQUIREMENTS} packages; list only what the code imports"
        )
    return RequirementList(
        tuple(reader.requirements),
        reader.index_url,
        tuple(reader.extra_index_urls),
        reader.hashes,
        reader.credentials,
        reader.named_sources(),
        reader.repositories,
    )


def repeated_packages(text: str) -> dict[str, list[int]]:
    """Returns normalised name -> numbers of the lines of each package that several lines name, without those
    of which a marker chooses one. Raises SpecError."""
    lines: dict[str, list[int]] = {}
    marked = set()
    for number, line in logical_lines(text):
        if line.startswith("-"):
            continue
        requirement = read_requirement(number, _HASH.sub("", line).strip())
        name = canonicalize_name(requirement.name)
        lines.setdefault(name, []).append(number)
        if requirement.marker is not None:
            marked.add(name)
    return {name: numbers for name, numbers in lines.items() if len(numbers) > 1 and name not in marked}


def with_requirement(text: str, requirement: str) -> str:
    """Returns the text with the requirement instead of the lines that name its package, else at the end.
    Raises SpecError if it is not one."""
    name = canonicalize_name(read_requirement(1, requirement).name)
    numbers = {
        number
        for number, line in logical_lines(text)
        if not line.startswith("-")
        and canonicalize_name(read_requirement(number, _HASH.sub("", line).strip()).name) == name
    }
    lines = text.splitlines()
    result: list[str] = []
    is_written = is_continued = False
    for number, line in enumerate(lines, start=1):
        # A line that a backslash continues is replaced as a whole.
        is_replaced = number in numbers or is_continued
        is_continued = is_replaced and line.endswith("\\")
        if not is_replaced:
            result.append(line)
        elif not is_written:
            result.append(requirement)
            is_written = True
    return "\n".join(result if is_written else [*result, requirement])


class _Reader:
    def __init__(self) -> None:
        self.requirements: list[str] = []
        self.hashes: dict[str, frozenset[str]] = {}
        self.index_url = ""
        self.extra_index_urls: list[str] = []
        self.credentials: dict[str, IndexCredentials] = {}
        self.repositories: dict[str, Repository] = {}
        # Normalised name of a package to build from source -> number of the line.
        self._sources: dict[str, int] = {}
        self._names: set[str] = set()

    def named_sources(self) -> frozenset[str]:
        """Returns the packages to build from source. Raises SpecError for one that no line asks for."""
        for name, number in self._sources.items():
            if name not in self._names:
                raise requirement_error(
                    number, f"--no-binary names {name}, which no line asks for; add the line {name}"
                )
        return frozenset(self._sources)

    def read(self, number: int, line: str) -> None:
        if line.startswith("-"):
            self._read_option(number, line)
            return
        hashes = _HASH.findall(line)
        text = _HASH.sub("", line).strip()
        for value in hashes:
            if not _SHA256.match(value):
                raise requirement_error(
                    number, f"{value!r:.100} is not a hash; write --hash=sha256: and 64 digits"
                )
        requirement = read_requirement(number, text)
        name = canonicalize_name(requirement.name)
        if requirement.url:
            text = self._read_repository(number, requirement, has_hash=bool(hashes))
        self.requirements.append(text)
        self._names.add(name)
        if hashes:
            self.hashes[name] = self.hashes.get(name, frozenset()) | frozenset(hashes)

    def _read_repository(self, number: int, requirement: Requirement, *, has_hash: bool) -> str:
        """Returns the line without a login."""
        name = canonicalize_name(requirement.name)
        if requirement.marker is not None:
            raise requirement_error(
                number, "a repository is taken without a condition; remove what follows the ';'"
            )
        if has_hash:
            raise requirement_error(
                number, "a repository has no --hash; write its whole commit after the '@' instead"
            )
        if name in self.repositories:
            raise requirement_error(number, f"names a repository of {name} again; remove one of the lines")
        if len(self.repositories) == MAX_REPOSITORIES:
            raise requirement_error(number, f"names more than {MAX_REPOSITORIES} repositories; remove some")
        try:
            self.repositories[name] = repository = read_repository(requirement.url or "")
        except ValueError as error:
            raise requirement_error(number, str(error)) from error
        requirement.url = repository.address()
        return str(requirement)

    def _read_option(self, number: int, line: str) -> None:
        option, value = split_option(line)
        if option == "--no-binary":
            self._read_no_binary(number, value)
        elif option in _INDEX_OPTIONS:
            self._read_index(number, option, value)
        elif option in _REMEDIES:
            raise requirement_error(number, f"{option} is not possible here: {_REMEDIES[option]}")
        else:
            raise requirement_error(number, f"{option:.50} is not an option of this list; remove it")

    def _read_no_binary(self, number: int, value: str) -> None:
        for name in value.replace(",", " ").split() or [""]:
            if not _NAME.match(name):
                raise requirement_error(
                    number,
                    f"--no-binary {name:.50} is not possible here; name packages: --no-binary horovod",
                )
            self._sources.setdefault(canonicalize_name(name), number)

    def _read_index(self, number: int, option: str, value: str) -> None:
        try:
            url, credentials = read_index_address(value)
        except ValueError as error:
            raise requirement_error(number, str(error)) from error
        if credentials is not None:
            self.credentials[url] = credentials
        if _INDEX_OPTIONS[option] == "--extra-index-url":
            self.extra_index_urls.append(url)
        elif self.index_url:
            raise requirement_error(number, "--index-url is given twice; write --extra-index-url for more")
        else:
            self.index_url = url
        if len(self.extra_index_urls) > MAX_INDEXES:
            raise requirement_error(number, f"names more than {MAX_INDEXES} indexes; remove some")
