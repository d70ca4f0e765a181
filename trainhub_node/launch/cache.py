"""The node's cache of snapshots and environments; the least recently used are removed first."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import logging
import os
import secrets
import threading
from contextlib import suppress
from pathlib import Path

from trainhub_node import records
from trainhub_node.environments import interpreter
from trainhub_node.intake.orders import SHA256
from trainhub_node.link.hub_client import HubClient, HubUnavailable, RequestRejected
from trainhub_node.settings import NodeSettings
from trainhub_node.untrusted import removal

log = logging.getLogger(__name__)
BLOCK = 1024 * 1024
# Suffix of folders that are no longer environments and wait for removal.
SET_ASIDE = ".set-aside"


class SnapshotCache:
    """Snapshot archives by their SHA-256. Two requests for the same one download it once."""

    def __init__(self, settings: NodeSettings, hub: HubClient) -> None:
        self._folder = settings.snapshots
        self._hub = hub
        self._lock = threading.Lock()

    def fetch(self, sha256: str) -> Path:
        """Returns the archive, from the cache or from the hub. Raises HubError."""
        if not SHA256.fullmatch(sha256):
            raise RequestRejected(f"{sha256!r:.100} is not the SHA-256 of a snapshot")
        path = self._folder / f"{sha256}.zip"
        if not path.exists():
            with self._lock, path.with_suffix(".part").open("ab") as part:
                # Another agent of this machine may share the cache.
                fcntl.flock(part, fcntl.LOCK_EX)
                if not path.exists():
                    self._download(sha256, Path(part.name), path)
        # The cache removes what was used least recently; reading does not change this time on most file
        # systems.
        os.utime(path)
        return path

    def _download(self, sha256: str, part: Path, path: Path) -> None:
        try:
            self._hub.download_snapshot(sha256, part)
        except OSError as error:
            if error.errno in records.DISK_FULL:
                part.unlink()  # half an archive would keep the disk full
            raise
        # Also after a complete download: the hub's disk, or a proxy, may have damaged it.
        if file_sha256(part) != sha256:
            part.unlink()
            raise HubUnavailable("the snapshot arrived damaged")
        part.rename(path)


def file_sha256(path: Path) -> str:
    result = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            result.update(block)
    return result.hexdigest()


def trim(settings: NodeSettings) -> list[Path]:
    """Removes the least recently used entries until the cache is within its limit. Entries in use stay."""
    # Oldest first, by the time of the last use.
    environments = _environments(settings)
    packages = _packages(settings, len(environments))
    entries = sorted((*_snapshots(settings), *environments, *packages), key=lambda entry: entry[0])
    total = sum(size for _, size, _ in entries)
    removed: list[Path] = []
    for _, size, path in entries:
        if total <= settings.cache_bytes:
            break
        if _discard(path):
            total -= size
            removed.append(path)
            log.info("Removed to keep the cache below %d bytes: %s", settings.cache_bytes, path)
    return removed


def _snapshots(settings: NodeSettings) -> list[tuple[float, int, Path]]:
    entries = []
    for path in settings.snapshots.glob("*.zip"):
        status = path.stat()
        entries.append((status.st_mtime, status.st_size, path))
    return entries


def _environments(settings: NodeSettings) -> list[tuple[float, int, Path]]:
    entries = []
    for marker in settings.environments.glob(f"*/{interpreter.MARKER}"):
        if not interpreter.belongs_to_agent(str(marker.parent)):
            continue  # being built, by an account that may put anything there; or see `set_untrusted_aside`
        status = marker.lstat()
        version = status.st_ino, interpreter.is_uncompiled(str(marker.parent))
        entries.append((status.st_mtime, _tree_bytes(marker.parent, version), marker.parent))
    return entries


def _packages(settings: NodeSettings, environments: int) -> list[tuple[float, int, Path]]:
    """Returns the caches of wheels. `environments`: how many there are."""
    entries = []
    for lock in settings.packages.glob("*.lock"):
        folder = lock.with_suffix("")
        if folder.is_dir():
            used_at = lock.stat().st_mtime
            entries.append((used_at, _unshared_bytes(folder, used_at, environments), folder))
    return entries


@functools.lru_cache(maxsize=4)
def _unshared_bytes(folder: Path, _used_at: float, _environments: int) -> int:
    """Returns the bytes below `folder` that no environment shares by hard links: what removing it frees.
    Cached until the cache is used, or an environment removed."""
    total = 0
    for path, _, files in os.walk(folder):
        for name in files:
            with suppress(FileNotFoundError):  # it is in use
                status = Path(path, name).lstat()
                total += status.st_size if status.st_nlink == 1 else 0
    return total


def set_untrusted_aside(settings: NodeSettings) -> list[Path]:
    """Renames environments that another account could have changed, and leftovers of builds that died.

    Earlier versions gave environments to the account of the runs. Such an environment stays while a run
    uses it; other runs get their own, see `interpreter.environment_folder`. `remove_set_aside` removes the
    folders later: deleting gigabytes would delay reports for so long that the hub takes the node for lost
    with all its runs. Returns the former paths."""
    moved = []
    for path in sorted(settings.environments.iterdir()):
        is_leftover = path.suffix in interpreter.SUFFIXES
        if not is_leftover and (path.suffix or interpreter.belongs_to_agent(str(path))):
            continue
        lock = interpreter.lock_exclusively(f"{path.with_suffix('')}.lock")
        if lock is None:
            log.warning(
                "%s does not belong to this account, and is in use: it stays until the agent starts after "
                "that run is over",
                path,
            )
            continue
        try:
            path.rename(f"{path}.{secrets.token_hex(8)}{SET_ASIDE}")
        finally:
            os.close(lock)
        moved.append(path)
        if not is_leftover:
            log.warning(
                "Discarded the environment %s: it belonged to another account, so that runs could change it. "
                "It is built again, as this account's, when a run needs it",
                path,
            )
    return moved


def remove_set_aside(settings: NodeSettings) -> None:
    """Removes the folders that `set_untrusted_aside` renamed. Raises OSError."""
    for path in settings.environments.glob(f"*{SET_ASIDE}"):
        removal.remove_tree(str(path))


@functools.lru_cache
def _tree_bytes(folder: Path, _version: tuple[int, bool]) -> int:
    """Returns the bytes below `folder`. Cached for each `_version`: an environment does not change after its
    build, except that its modules may be compiled later."""
    total = 0
    for path, _, files in os.walk(folder):
        total += sum(Path(path, name).lstat().st_size for name in files)
    return total


def _discard(path: Path) -> bool:
    if path.suffix == ".zip":
        path.unlink(missing_ok=True)
        return True
    lock = interpreter.lock_exclusively(f"{path}.lock")
    if lock is None:
        return False
    try:
        if not (path / interpreter.MARKER).exists():
            removal.remove_tree(str(path))
            return True
        # Without its marker it is no environment any more, even if this process dies half way.
        (path / interpreter.MARKER).unlink()
        interpreter.discard_environment(str(path))
    finally:
        os.close(lock)
    return True
