"""The bytes of locked files: each is fetched once from its index or channel, when a node first needs it, and
kept."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Collection
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from django.db import close_old_connections

from environments.models import BuiltWheel, LockedFile, PackageFile
from environments.packages.upstream import FetchFailed, download_package
from workspaces.stored_files import blob_cache
from workspaces.stored_files.blob_writer import store_file

log = logging.getLogger(__name__)
MAX_AT_ONCE = 4
# A file that could not be fetched is not asked for again within this time.
FAILURE_LIFETIME_S = 10.0
MAX_FAILURES = 1000


@dataclass(frozen=True)
class PackageProgress:
    """How many of the files that a node needs are on the hub. `failures`: (file, sentence)."""

    files: int
    ready: int
    bytes: int
    failures: tuple[tuple[str, str], ...]


class _Fetches:
    """The downloads of this process, by SHA-256. Two requests for the same file wait for one download."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[str, Future[None]] = {}
        self._failures: OrderedDict[str, tuple[float, str]] = OrderedDict()
        self._threads = ThreadPoolExecutor(MAX_AT_ONCE, "packages")

    def start(self, file: LockedFile) -> Future[None]:
        with self._lock:
            existing = self._running.get(file.sha256)
            if existing is not None:
                return existing
            future = self._threads.submit(self._fetch, file)
            self._running[file.sha256] = future
            return future

    def failure(self, sha256: str) -> str:
        """Returns why the file could not be fetched a moment ago, or ""."""
        with self._lock:
            failed_at, sentence = self._failures.get(sha256, (0.0, ""))
        return sentence if time.monotonic() - failed_at < FAILURE_LIFETIME_S else ""

    def _fetch(self, file: LockedFile) -> None:
        close_old_connections()
        try:
            fetch_now(file)
        except FetchFailed as error:
            self._remember(file, str(error))
            raise
        except Exception as error:
            log.exception("Fetching %s failed", file.filename)
            sentence = "the hub itself failed at it; an operator finds the reason in its log"
            self._remember(file, sentence)
            raise FetchFailed(sentence) from error
        finally:
            with self._lock:
                self._running.pop(file.sha256, None)
            close_old_connections()

    def _remember(self, file: LockedFile, sentence: str) -> None:
        log.warning("The package file %s could not be fetched: %s", file.filename, sentence)
        with self._lock:
            self._failures[file.sha256] = (time.monotonic(), sentence)
            while len(self._failures) > MAX_FAILURES:
                self._failures.popitem(last=False)


_fetches = _Fetches()


def is_stored(file: LockedFile) -> bool:
    """Returns whether the hub has the bytes, and has them from an index, or from a build of the version's
    workspace."""
    return bool(stored_sizes([file]))


def fetch_now(file: LockedFile) -> None:
    """Fetches the file unless it is stored. Raises FetchFailed."""
    if is_stored(file):
        return
    if not file.url:
        raise FetchFailed("the wheel that a node has built is gone; make a new version of the environment")
    size = download_package(file)
    PackageFile.objects.get_or_create(sha256=file.sha256, defaults={"size_bytes": size})
    log.info("Fetched %s (%d bytes)", file.filename, size)


def store_package(path: Path) -> tuple[str, int]:
    """Stores a file that the hub itself has fetched from an address, and returns its SHA-256 and size. `path`
    is deleted."""
    size = path.stat().st_size
    sha256 = store_file(path)
    PackageFile.objects.get_or_create(sha256=sha256, defaults={"size_bytes": size})
    return sha256, size


def start_fetch(file: LockedFile) -> Future[None]:
    """Fetches the file unless it is stored, in a thread. The result raises FetchFailed."""
    return _fetches.start(file)


def prepare_files(files: Collection[LockedFile]) -> PackageProgress:
    """Starts to fetch what is missing, and returns how far that is."""
    ready = stored_sizes(files)
    failures = []
    for file in files:
        if file.sha256 in ready:
            continue
        sentence = _fetches.failure(file.sha256)
        if sentence:
            failures.append((file.filename, sentence))
        else:
            start_fetch(file)
    total = sum(ready.values())
    return PackageProgress(len(files), sum(file.sha256 in ready for file in files), total, tuple(failures))


def stored_sizes(files: Collection[LockedFile]) -> dict[str, int]:
    """Returns the sizes of those files whose bytes the hub has and may hand out for their versions, by
    SHA-256. A wheel that was built counts only in the workspace that has built it."""
    sizes: dict[str, int] = {}
    fetched = [file.sha256 for file in files if file.url]
    if fetched:
        rows = PackageFile.objects.filter(sha256__in=fetched)
        sizes.update(rows.values_list("sha256", "size_bytes"))
    for file in files:
        if not file.url:
            own = BuiltWheel.objects.filter(
                workspace=file.version.environment.workspace_id, sha256=file.sha256
            )
            sizes.update(own.values_list("sha256", "size_bytes"))
    absent = blob_cache.absent_hashes(sizes)
    return {sha256: size for sha256, size in sizes.items() if sha256 not in absent}


def forget_unused() -> int:
    """Deletes the rows of files, fetched and built ones, that no lock names any more; the sweep of stored
    files deletes their bytes later. Returns how many."""
    named = LockedFile.objects.values("sha256")
    BuiltWheel.objects.exclude(sha256__in=named).delete()
    return PackageFile.objects.exclude(sha256__in=named).delete()[0]
