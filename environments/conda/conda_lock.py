"""The lock of a conda environment: every package of conda with its address and SHA-256, and the lock of what
pip installs on top."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from packaging.version import Version

from environments.lock_file import LockedPackage, read_lock

FORMAT = 1
PLATFORM = "linux-64"
# Every node has it: Python itself needs it.
OLDEST_GLIBC = Version("2.17")
_GLIBC = re.compile(r"__glibc\s.*?>=?\s*(\d{1,3}(?:\.\d{1,4}){1,3})")


@dataclass(frozen=True)
class CondaPackage:
    """A package as nodes install it. `subdir`: the part of the channel ("linux-64"); `noarch`: "python",
    "generic" or ""; `depends`: as in the channel's index; `site_packages`: where its Python looks for
    modules, "" for the usual place."""

    name: str
    version: str
    build: str
    build_number: int
    subdir: str
    noarch: str
    depends: tuple[str, ...]
    file: str
    url: str
    channel: str
    sha256: str
    size: int
    site_packages: str = ""

    @property
    def glibc(self) -> str:
        """The oldest version of glibc with which it works ("2.34"); "" if every node has it."""
        matches = (_GLIBC.match(need) for need in self.depends)
        newer = (match[1] for match in matches if match and Version(match[1]) > OLDEST_GLIBC)
        return max(newer, key=Version, default="")

    @property
    def is_module(self) -> bool:
        """Whether pip knows it, too: only what needs Python is a Python package."""
        return self.name != "python" and any(need.split()[0] == "python" for need in self.depends)


@dataclass(frozen=True)
class CondaLock:
    """`virtual_packages`: what the machines must have at least ("__glibc" -> "2.28"). `pip`: the text of the
    requirements lock, or ""."""

    channels: tuple[str, ...]
    virtual_packages: Mapping[str, str]
    packages: tuple[CondaPackage, ...]
    pip: str = ""

    def to_text(self) -> str:
        data = {"format": FORMAT, "platform": PLATFORM} | asdict(self)
        return json.dumps(data, indent=1, sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> CondaLock:
        data: dict[str, Any] = json.loads(text)
        packages = tuple(
            CondaPackage(**{**item, "depends": tuple(item["depends"])}) for item in data["packages"]
        )
        return cls(tuple(data["channels"]), data["virtual_packages"], packages, data["pip"])

    @property
    def python(self) -> str:
        """The exact version of Python, "" if there is none."""
        return next((package.version for package in self.packages if package.name == "python"), "")

    def explicit(self) -> str:
        """Returns the packages of conda as `conda create --file` and micromamba read them."""
        lines = (f"{package.url}#sha256:{package.sha256}" for package in self.packages)
        return "\n".join((f"# platform: {PLATFORM}", "@EXPLICIT", *lines, ""))

    def locked_packages(self) -> tuple[LockedPackage, ...]:
        """Returns all packages, by name, each with what installs it."""
        conda = (
            LockedPackage(
                package.name,
                package.version,
                (f"sha256:{package.sha256}",),
                package.channel,
                installer="conda",
                build=package.build,
            )
            for package in self.packages
        )
        return tuple(sorted((*conda, *read_lock(self.pip)), key=lambda package: package.name))


def conda_packages(records: Iterable[Mapping[str, Any]]) -> tuple[CondaPackage, ...]:
    """Returns the packages that rattler's records describe, by name. Raises KeyError with the name of one
    that has no SHA-256."""
    packages = []
    for record in records:
        if not record.get("sha256"):
            raise KeyError(record["name"])
        packages.append(
            CondaPackage(
                name=record["name"],
                version=record["version"],
                build=record["build"],
                build_number=record["build_number"],
                subdir=record["subdir"],
                noarch=str(record.get("noarch") or ""),
                depends=tuple(record.get("depends", ())),
                file=record["fn"],
                url=record["url"],
                channel=(record.get("channel") or "").rstrip("/"),
                sha256=record["sha256"],
                size=record.get("size") or 0,
                site_packages=record.get("python_site_packages_path") or "",
            )
        )
    return tuple(sorted(packages, key=lambda package: package.name))
