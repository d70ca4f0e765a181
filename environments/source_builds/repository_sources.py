"""Packages that come from a git repository: the commit that a line means now, kept by the hub as a source
distribution, and what its files say about the package."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from environments.errors import Unresolvable
from environments.indexes.index_secrets import SecretRefused
from environments.models import EnvironmentVersion
from environments.packages.file_list import PackageAddress
from environments.packages.package_store import store_package
from environments.packages.private_logins import repository_login
from environments.repositories.commit_archive import open_commit_archive
from environments.repositories.git_process import RepositoryFailed
from environments.repositories.repository_address import Repository
from environments.resolving.stand_in_wheels import write_stand_in
from environments.source_builds.source_metadata import (
    SourceMetadata,
    UnreadableSource,
    read_source_metadata,
)
from workspaces.stored_files import blob_cache

_TAG = re.compile(r"(?:refs/tags/)?(?:release[-/])?v?(\d[^/]*)\Z")
# How tools that read the version from git are told one: there is no history where the package is built.
VERSION_VARIABLES = (
    "SETUPTOOLS_SCM_PRETEND_VERSION",
    "PDM_BUILD_SCM_VERSION",
    "PBR_VERSION",
    "POETRY_DYNAMIC_VERSIONING_BYPASS",
)


@dataclass(frozen=True)
class RepositorySource:
    """`commit`: its whole name. `origin`: the address with it. `version`: what its files say; if they
    leave that to the build (`is_version_built`), one that is made of the tag or commit."""

    file: PackageAddress
    commit: str
    origin: str
    version: str
    is_version_built: bool
    metadata: SourceMetadata

    @property
    def variables(self) -> dict[str, str]:
        """Returns the variables of its build."""
        return dict.fromkeys(VERSION_VARIABLES, self.version) if self.is_version_built else {}

    @property
    def marked_version(self) -> str:
        """Returns the version with a mark that no index has, so that the resolver takes nothing else."""
        mark = f"git.{self.commit[:12]}"
        local = Version(self.version).local or ""
        if local.endswith(mark):
            return self.version
        return f"{self.version}{'.' if local else '+'}{mark}"


def fetch_repository_source(
    version: EnvironmentVersion, name: str, repository: Repository
) -> RepositorySource:
    """Fetches the package of this normalised name. Raises Unresolvable."""
    stem = name.replace("-", "_")
    try:
        login = repository_login(version, repository)
        with open_commit_archive(repository, login, stem) as archive:
            # No name of a source distribution: nothing reads a version out of it.
            filename = f"{stem}_git_{archive.commit}.tar.gz"
            sha256, size = store_package(archive.path)
            origin = repository.address(archive.commit)
        metadata = read_source_metadata(blob_cache.local_path(sha256), filename)
    except (RepositoryFailed, SecretRefused) as error:
        raise Unresolvable(str(error)) from error
    except UnreadableSource as error:
        raise Unresolvable(f"{name} cannot be built: {error}.") from error
    if metadata.name and canonicalize_name(metadata.name) != name:
        raise Unresolvable(
            f"{origin} has the package {metadata.name}, not {name}. Write {metadata.name} in that line."
        )
    number, is_built = _version(metadata, repository.ref, archive.commit)
    file = PackageAddress(name, filename, origin, sha256, size)
    return RepositorySource(file, archive.commit, origin, number, is_built, metadata)


@contextmanager
def stand_in_folder(sources: Iterable[RepositorySource]) -> Iterator[Path]:
    """Yields a folder that has, for each source, a wheel without content that says what the package needs."""
    with tempfile.TemporaryDirectory(prefix="trainhub-stand-ins-") as name:
        folder = Path(name)
        for source in sources:
            metadata = source.metadata
            lines = [f"Requires-Dist: {item}" for item in metadata.dependencies]
            lines += [f"Provides-Extra: {item}" for item in metadata.extras]
            if metadata.requires_python:
                lines.append(f"Requires-Python: {metadata.requires_python}")
            write_stand_in(folder, source.file.project, source.marked_version, lines)
        yield folder


def _version(metadata: SourceMetadata, ref: str, commit: str) -> tuple[str, bool]:
    """Returns the version, and whether only the build shows the real one."""
    tag = _TAG.match(ref)
    for text, is_built in ((metadata.version, False), (tag[1] if tag else "", True)):
        try:
            return str(Version(text)), is_built
        except InvalidVersion:
            continue
    return f"0+git.{commit[:12]}", True
