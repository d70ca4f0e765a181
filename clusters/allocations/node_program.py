"""The node program as one archive, with all that it requires: what a job of Slurm brings to its nodes, and
what nodes fetch that upgrade themselves.

It is packed from what this hub itself runs with, so nothing is downloaded and both have the same version. Its
compiled parts are for the hub's kind of processor and any Python from 3.11 on."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import io
import logging
import re
import tarfile
import threading
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from pathlib import Path

from django.conf import settings
from packaging.requirements import Requirement

from clusters.enrolment.node_wheel import node_wheel
from clusters.models import Allocation, NodeUpgrade
from workspaces import process_caches

log = logging.getLogger(__name__)
# Beside a program, where `uv` looks for its binary.
BINARIES = {"uv": "bin/uv"}
# Most of it is compiled code, which more effort makes hardly smaller.
COMPRESSION = 1
# What requirements are read for: the Python of this hub, and the oldest that nodes may have.
PYTHONS: tuple[dict[str, str], ...] = ({}, {"python_version": "3.11", "python_full_version": "3.11.0"})
PATTERN = "node-*.tar.gz"
_DIGEST = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class NodeArchive:
    path: Path
    sha256: str


_lock = threading.Lock()
_by_wheel: dict[str, NodeArchive] = {}
process_caches.register(_by_wheel.clear)


def node_archive() -> NodeArchive | None:
    """Returns the archive, which takes seconds to pack once per version of the hub. None if the package for
    nodes cannot be built (the log says why)."""
    wheel = node_wheel()
    if wheel is None:
        return None
    with _lock:
        archive = _by_wheel.get(str(wheel))
        if archive is None or not archive.path.exists():
            _folder().mkdir(mode=0o700, parents=True, exist_ok=True)
            with (_folder() / "lock").open("w") as lock:
                # Other processes of this hub pack the same.
                fcntl.flock(lock, fcntl.LOCK_EX)
                archive = _by_wheel[str(wheel)] = _stored(wheel) or _pack(wheel)
        return archive


def pack_problem() -> str:
    """Packs the archive if there is none. Returns why it cannot be packed, "" if it is there."""
    try:
        return "" if node_archive() else "its package for nodes cannot be built"
    except PackageNotFoundError as error:
        return f"the package {error.name} is not installed beside it; run `make up` again"
    except OSError as error:
        return f"{_folder()} cannot be written: {error.strerror}"


def archive_path(sha256: str) -> Path | None:
    """Returns the file of this digest, if this hub has packed it."""
    return next(_folder().glob(f"node-*-{sha256}.tar.gz"), None) if _DIGEST.fullmatch(sha256) else None


def _stored(wheel: Path) -> NodeArchive | None:
    """Returns what another process of this hub has packed of this wheel and these requirements."""
    for path in _folder().glob(f"node-{_version_digest(wheel)}-*.tar.gz"):
        return NodeArchive(path, path.name.removesuffix(".tar.gz").rpartition("-")[2])
    return None


def _pack(wheel: Path) -> NodeArchive:
    started = time.monotonic()
    folder = _folder()
    earlier = list(folder.glob(PATTERN))
    part = folder / "part"
    try:
        with tarfile.open(part, "w:gz", compresslevel=COMPRESSION) as archive:
            _add_wheel(archive, wheel)
            for distribution in _requirements(wheel):
                _add_distribution(archive, distribution)
        with part.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        path = part.rename(folder / f"node-{_version_digest(wheel)}-{digest}.tar.gz")
    finally:
        part.unlink(missing_ok=True)
    # Jobs that Slurm has already name an earlier one, and may wait for weeks; so may an order to upgrade.
    is_needed = NodeUpgrade.objects.filter(ended_at=None).exists()
    if not is_needed and not Allocation.objects.filter(over_at=None).exclude(job_id=None).exists():
        for other in earlier:
            other.unlink(missing_ok=True)
    log.info("Packed %s in %.1f s", path.name, time.monotonic() - started)
    return NodeArchive(path, digest)


def _folder() -> Path:
    return Path(settings.NODE_PROGRAMS)


def _version_digest(wheel: Path) -> str:
    parts = [wheel.parent.name, wheel.name]
    parts += sorted(f"{item.name} {item.version}" for item in _requirements(wheel))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _add_wheel(archive: tarfile.TarFile, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        for name in files.namelist():
            _add_bytes(archive, name, files.read(name))


def _add_distribution(archive: tarfile.TarFile, distribution: importlib.metadata.Distribution) -> None:
    binary = BINARIES.get(distribution.name)
    for file in distribution.files or ():
        path = Path(str(file.locate()))
        if file.parts[0] != ".." and file.suffix != ".pyc" and path.is_file():
            archive.add(path, str(file), recursive=False, filter=_plain)
        elif binary is not None and file.as_posix().endswith(f"/{binary}"):
            archive.add(path, binary, recursive=False, filter=_plain)


def _add_bytes(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(_plain(member), io.BytesIO(data))


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Whose file it was on the hub concerns nobody else."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o755 if member.mode & 0o111 else 0o644
    return member


def _requirements(wheel: Path) -> Iterator[importlib.metadata.Distribution]:
    """Yields what the wheel requires as this hub has it, and what that requires in turn. Raises
    PackageNotFoundError for an installation that lacks some of it."""
    with zipfile.ZipFile(wheel) as files:
        name = next(name for name in files.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = importlib.metadata.PathDistribution(zipfile.Path(files, name.rpartition("/")[0] + "/"))
        waiting = [Requirement(text) for text in metadata.requires or ()]
    visited: set[tuple[str, frozenset[str]]] = set()
    yielded: set[str] = set()
    while waiting:
        requirement = waiting.pop()
        key = (requirement.name.lower(), frozenset(requirement.extras))
        if key in visited:
            continue
        visited.add(key)
        distribution = importlib.metadata.distribution(requirement.name)
        if distribution.name not in yielded:
            yielded.add(distribution.name)
            yield distribution
        for text in distribution.requires or ():
            needed = Requirement(text)
            environments = [
                {"extra": extra, **python} for extra in ("", *requirement.extras) for python in PYTHONS
            ]
            if needed.marker is None or any(map(needed.marker.evaluate, environments)):
                waiting.append(needed)
