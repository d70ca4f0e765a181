"""The cache of data of this node, for its agent: where it is, and what becomes of the folders of attempts."""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from trainhub_node.attempts.attempt_list import Attempts, Key
from trainhub_node.data import durability
from trainhub_node.data.contents.content_namer import ContentNamer
from trainhub_node.data.data_cache import DataCache
from trainhub_node.rundir import InvalidIdentifier, RunDir
from trainhub_node.settings import NodeSettings
from trainhub_node.untrusted import removal

log = logging.getLogger(__name__)
# Of the disk, where the operator says nothing.
DEFAULT_SHARE = 0.5


@functools.cache
def find_obstore() -> str:
    """Returns the folder in which the package obstore is installed for this agent, "" if it is not: an agent
    that was upgraded in an older environment may lack it. It is never loaded into the agent."""
    spec = find_spec("obstore")
    places = spec.submodule_search_locations if spec else None
    return str(Path(places[0]).parent) if places else ""


def data_terms(settings: NodeSettings) -> dict[str, object]:
    """Returns what the child of an attempt needs to download data."""
    cache = node_cache(settings)
    return {
        "library": find_obstore(),
        "cache": cache.folder,
        "trees": cache.trees,
        "limit": cache_bytes(settings),
    }


def cache_bytes(settings: NodeSettings) -> int:
    """Returns the size of the cache, which no larger one than the disk can have."""
    disk = _disk_bytes(settings.cache)
    return min(settings.data_cache_bytes or int(disk * DEFAULT_SHARE), disk)


def node_cache(settings: NodeSettings) -> DataCache:
    # Agents in containers may have the same folder, as they see it.
    agent = hashlib.sha256(f"{settings.name}\n{settings.folder}".encode()).hexdigest()[:16]
    return DataCache(f"{settings.cache}/data", agent)


class DataKeeper:
    """Looks after the cache in threads of its own: once a download is over, writes it to the disk and has its
    contents named; removes what attempts that are over have seen of it, which counts as used until then.
    `command`: what starts a process of the agent."""

    def __init__(self, settings: NodeSettings, attempts: Attempts, command: Sequence[str]) -> None:
        self._cache = node_cache(settings)
        self._namer = ContentNamer(self._cache, command)
        self._attempts = attempts
        self._started: set[Key] = set()
        self._ended: set[Key] = set()
        self._threads = ThreadPoolExecutor(1, "data")

    def note_start(self, folder: RunDir) -> None:
        """To be called when the ranks of an attempt have started. Called from one thread only; repeated calls
        have no effect."""
        if folder.key not in self._started:
            self._started.add(folder.key)
            if os.path.exists(self._tree(folder)):
                self._threads.submit(self._write_out)

    def note_end(self, folder: RunDir) -> None:
        """To be called when an attempt is over. As `note_start`."""
        if folder.key not in self._ended:
            self._ended.add(folder.key)
            if os.path.exists(self._tree(folder)):
                self._threads.submit(self._remove, self._tree(folder))

    def sweep(self) -> None:
        """Removes what attempts have seen that are over: an agent may have ended before it did. To be called
        before the folders of attempts are discarded, which say which agent the attempt was one of: others of
        this name and folder, in containers, may have the same cache."""
        try:
            names = os.listdir(self._cache.trees)
        except FileNotFoundError:
            return
        for name in names:
            path = self._cache.tree(name)
            try:
                key = RunDir.at(path).key
            except InvalidIdentifier:
                log.warning("%s is no folder of an attempt; it is left alone", path)
                continue
            if os.path.exists(self._attempts.folder(*key).path) and not self._attempts.is_tracked(key):
                _remove(path)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._namer.close()

    def _write_out(self) -> None:
        try:
            durability.write_out(self._cache)
        except OSError as error:
            log.warning("The cache of data could not be written to the disk: %s", error)
        self._namer.submit()

    def _remove(self, path: str) -> None:
        _remove(path)
        # Copies that only this run used are not needed any more.
        self._namer.submit()

    def _tree(self, folder: RunDir) -> str:
        return self._cache.tree(os.path.basename(folder.path))


def _remove(path: str) -> None:
    try:
        removal.remove_tree(path)
    except OSError as error:
        log.warning("%s could not be removed; the next sweep tries again: %s", path, error)


def _disk_bytes(path: Path) -> int:
    # The cache, and what is above it, may be made only by the first run.
    existing = next(folder for folder in (path, *path.parents) if folder.exists())
    return shutil.disk_usage(existing).total
