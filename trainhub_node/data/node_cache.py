"""The cache of data of this node, for its agent: where it is, and what becomes of the folders of attempts."""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from trainhub_node.attempts.attempt_list import Attempts, Key
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
        "limit": settings.data_cache_bytes or int(_disk_bytes(settings.cache) * DEFAULT_SHARE),
    }


def node_cache(settings: NodeSettings) -> DataCache:
    # Agents in containers may have the same folder, as they see it.
    agent = hashlib.sha256(f"{settings.name}\n{settings.folder}".encode()).hexdigest()[:16]
    return DataCache(f"{settings.cache}/data", agent)


class TreeCleaner:
    """Removes what attempts that are over have seen of the cache, in a thread of its own: until then it
    counts as used."""

    def __init__(self, settings: NodeSettings, attempts: Attempts) -> None:
        self._cache = node_cache(settings)
        self._attempts = attempts
        self._submitted: set[Key] = set()
        self._threads = ThreadPoolExecutor(1, "data")

    def submit(self, folder: RunDir) -> None:
        """Removes what an attempt that is over has seen. Called from one thread only; repeated calls have no
        effect."""
        if folder.key not in self._submitted:
            self._submitted.add(folder.key)
            path = self._cache.tree(os.path.basename(folder.path))
            if os.path.exists(path):
                self._threads.submit(_remove, path)

    def sweep(self) -> None:
        """Removes what attempts have seen that are not tracked: an agent may have ended before it did."""
        try:
            names = os.listdir(self._cache.trees)
        except FileNotFoundError:
            return
        for name in names:
            try:
                key = RunDir.at(self._cache.tree(name)).key
            except InvalidIdentifier:
                log.warning("%s is no folder of an attempt; it is left alone", self._cache.tree(name))
                continue
            if not self._attempts.is_tracked(key):
                _remove(self._cache.tree(name))

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _remove(path: str) -> None:
    try:
        removal.remove_tree(path)
    except OSError as error:
        log.warning("%s could not be removed; the next sweep tries again: %s", path, error)


def _disk_bytes(path: Path) -> int:
    return shutil.disk_usage(path if path.exists() else path.parent).total
