"""Fetches a list of files, a few at once."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from django.db import connections

from environments.images.image_lock import read_image_lock
from environments.images.layer_download import LayerDownload
from environments.images.manifest import Layer
from environments.models import EnvironmentVersion, LockedFile
from environments.packages import package_store
from environments.packages.upstream import FetchFailed

log = logging.getLogger(__name__)
MAX_FILES_AT_ONCE = 3


class HubFile(Protocol):
    """A file that the hub lacks. `size`: its bytes, 0 if not known; `arrived_bytes`: how many have come."""

    size: int

    @property
    def arrived_bytes(self) -> int: ...

    def fetch(self) -> str:
        """Returns a sentence why it could not be fetched, or ""."""

    def stop(self) -> None:
        """Ends the fetching soon."""


class LayerFile:
    """A layer of an image."""

    def __init__(self, version: EnvironmentVersion, layer: Layer) -> None:
        self.size = layer.size
        self._download = LayerDownload(version, read_image_lock(version.lock).reference, layer)

    @property
    def arrived_bytes(self) -> int:
        return 0 if self._download.is_done else self._download.written

    def fetch(self) -> str:
        self._download.fetch()
        return self._download.error

    def stop(self) -> None:
        self._download.stop()


class PackageToFetch:
    """A wheel or a package of conda."""

    def __init__(self, file: LockedFile) -> None:
        self.size = file.size_bytes
        self._file = file

    @property
    def arrived_bytes(self) -> int:
        return 0

    def fetch(self) -> str:
        try:
            package_store.fetch_now(self._file)
        except FetchFailed as error:
            return f"{self._file.filename} could not be fetched: {str(error).rstrip('.')}."
        return ""

    def stop(self) -> None:
        """It has limits of its own."""


class FileQueue:
    """`max_failures`: after so many nothing more is begun."""

    def __init__(self, files: Sequence[HubFile], *, max_failures: int) -> None:
        self._lock = threading.Lock()
        self._waiting = deque(files)
        self._running: set[HubFile] = set()
        self._failures: list[str] = []
        self._max_failures = max_failures
        self._threads = [
            threading.Thread(target=self._work, name="hub-file", daemon=True)
            for _ in range(min(MAX_FILES_AT_ONCE, len(files)))
        ]

    @property
    def arriving_bytes(self) -> int:
        with self._lock:
            return sum(file.arrived_bytes for file in self._running)

    @property
    def failure(self) -> str:
        """Returns the sentences of what failed, or ""."""
        return " ".join(dict.fromkeys(self._failures))

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def wait(self, timeout_s: float) -> bool:
        """Returns whether everything has ended, at the latest after so many seconds."""
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout_s)
                return not any(thread.is_alive() for thread in self._threads)
        return True

    def stop(self) -> None:
        """Begins nothing more, and ends what can be ended."""
        with self._lock:
            self._waiting.clear()
            for file in self._running:
                file.stop()

    def _work(self) -> None:
        try:
            while (file := self._next()) is not None:
                sentence = self._fetch(file)
                with self._lock:
                    self._running.discard(file)
                    if sentence:
                        self._failures.append(sentence)
                        if len(self._failures) >= self._max_failures:
                            self._waiting.clear()
        finally:
            connections.close_all()

    def _next(self) -> HubFile | None:
        with self._lock:
            if not self._waiting:
                return None
            file = self._waiting.popleft()
            self._running.add(file)
            return file

    def _fetch(self, file: HubFile) -> str:
        try:
            return file.fetch()
        except Exception:
            log.exception("Fetching a file of a version failed")
            return "The hub itself failed at a file; an operator finds the reason in its log."
