"""Reads the text of a lock: every package with its exact version and the hashes of its files."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from packaging.utils import canonicalize_name

from environments.repositories.repository_address import PREFIX

_ENTRY = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(\[[^\]]*\])?==([^\s;\\]+)")
_HASH = re.compile(r"--hash=(sha256:[0-9a-f]{64})")
_SOURCE = re.compile(r"^\s+#\s+from\s+(\S+)", re.M)
_SIZE = re.compile(r"^\s+#\s+size\s+(\d{1,15})$", re.M)


@dataclass(frozen=True)
class LockedPackage:
    """`name`: normalised. `index`: the address of the index, channel or repository that has it, "" if that is
    not known. `size`: the bytes of the file that is installed, 0 if that is not known. `installer`: "pip" or
    "conda"; `build`: of a package of conda, which has several of one version."""

    name: str
    version: str
    hashes: tuple[str, ...]
    index: str = ""
    size: int = 0
    installer: str = "pip"
    build: str = ""

    @property
    def repository(self) -> str:
        """The address of the git repository that has it, with the commit; "" if it is from elsewhere."""
        return self.index if self.index.startswith(PREFIX) else ""

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
            source, size = _SOURCE.search(block), _SIZE.search(block)
            packages.append(
                LockedPackage(
                    canonicalize_name(match[1]),
                    match[3],
                    tuple(_HASH.findall(block)),
                    source[1] if source else "",
                    int(size[1]) if size else 0,
                )
            )
    return tuple(sorted(packages, key=lambda package: package.name))


def write_lock(packages: Iterable[LockedPackage]) -> str:
    """Returns the text of a lock with these packages, which `read_lock` and pip read."""
    blocks = []
    for package in packages:
        lines = [f"{package.name}=={package.version}", *(f"    --hash={value}" for value in package.hashes)]
        comments = [f"    # size {package.size}"] if package.size else []
        comments += [f"    # from {package.index}"] if package.index else []
        blocks.append("\n".join((" \\\n".join(lines), *comments, "")))
    return "".join(blocks)


def without_packages(text: str, names: Container[str]) -> str:
    """Returns the lock without the packages of these normalised names."""
    blocks = re.split(r"\n(?=[A-Za-z0-9])", text)
    remaining = (block.removesuffix("\n") for block in blocks if block and _name_of(block) not in names)
    return "".join(f"{block}\n" for block in remaining)


def _name_of(block: str) -> str:
    match = _ENTRY.match(block)
    return canonicalize_name(match[1]) if match else ""


def with_sizes(text: str, sizes: Mapping[str, int]) -> str:
    """Returns the lock with the bytes of each package's file, by its name, as a comment."""
    blocks = re.split(r"\n(?=[A-Za-z0-9])", text)
    return "\n".join(_with_size(block, sizes) for block in blocks)


def _with_size(block: str, sizes: Mapping[str, int]) -> str:
    match = _ENTRY.match(block)
    size = sizes.get(canonicalize_name(match[1])) if match else None
    if size is None:
        return block
    lines = block.splitlines()
    end = next((number for number, line in enumerate(lines) if line.lstrip().startswith("#")), len(lines))
    last = "\n" if block.endswith("\n") else ""  # the last block ends the file
    return "\n".join([*lines[:end], f"    # size {size}", *lines[end:]]) + last


def download_bytes(packages: Iterable[LockedPackage]) -> int | None:
    """Returns how much a node without any of the packages downloads, None if that is not known of one."""
    sizes = [package.size for package in packages]
    return sum(sizes) if sizes and all(sizes) else None


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
