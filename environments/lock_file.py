"""Reads the text of a lock: every package with its exact version and the hashes of its files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from packaging.utils import canonicalize_name

_ENTRY = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(\[[^\]]*\])?==([^\s;\\]+)")
_HASH = re.compile(r"--hash=(sha256:[0-9a-f]{64})")
_SOURCE = re.compile(r"^\s+#\s+from\s+(\S+)")


@dataclass(frozen=True)
class LockedPackage:
    """`name`: normalised. `index`: the address of the index or channel that has it, "" if that is not known.
    `installer`: "pip" or "conda"; `build`: of a package of conda, which has several of one version."""

    name: str
    version: str
    hashes: tuple[str, ...]
    index: str = ""
    installer: str = "pip"
    build: str = ""

    @property
    def full_version(self) -> str:
        return f"{self.version} {self.build}".strip()


@dataclass(frozen=True)
class PackageChange:
    """A package that differs between two locks. `before`, `after`: its versions, "" where it is missing."""

    name: str
    before: str
    after: str


def read_lock(text: str) -> tuple[LockedPackage, ...]:
    """Returns the packages of the lock, by name."""
    packages: list[LockedPackage] = []
    for block in re.split(r"\n(?=[A-Za-z0-9])", f"\n{text}"):
        match = _ENTRY.match(block)
        if match:
            source = next(
                (source_match[1] for line in block.splitlines() if (source_match := _SOURCE.match(line))), ""
            )
            hashes = tuple(_HASH.findall(block))
            packages.append(LockedPackage(canonicalize_name(match[1]), match[3], hashes, source))
    return tuple(sorted(packages, key=lambda package: package.name))


def pins_of(text: str) -> tuple[str, ...]:
    """Returns the packages of the lock as requirements with exact versions."""
    return tuple(f"{package.name}=={package.version}" for package in read_lock(text))


def compare_packages(
    before: Iterable[LockedPackage], after: Iterable[LockedPackage]
) -> tuple[PackageChange, ...]:
    """Returns the packages whose version differs, or that only one of two locks has, by name."""
    old, new = ({package.name: package.full_version for package in packages} for packages in (before, after))
    return tuple(
        PackageChange(name, old.get(name, ""), new.get(name, ""))
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    )


def restrict_hashes(text: str, allowed: Mapping[str, frozenset[str]]) -> str:
    """Returns the lock with only the allowed hashes of the packages in `allowed`. Raises KeyError with the
    package's name and version if none of its files has an allowed hash."""
    blocks = re.split(r"\n(?=[A-Za-z0-9])", text)
    return "\n".join(_restrict(block, allowed) for block in blocks)


def _restrict(block: str, allowed: Mapping[str, frozenset[str]]) -> str:
    match = _ENTRY.match(block)
    hashes = allowed.get(canonicalize_name(match[1])) if match else None
    if match is None or hashes is None:
        return block
    remaining = [value for value in _HASH.findall(block) if value in hashes]
    if not remaining:
        raise KeyError(f"{match[1]} {match[3]}")
    first, *rest = block.splitlines()
    comments = [line for line in rest if "--hash=" not in line]
    lines = [first.removesuffix("\\").rstrip(), *(f"    --hash={value}" for value in remaining)]
    return " \\\n".join(lines) + "".join(f"\n{line}" for line in comments)
