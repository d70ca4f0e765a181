"""Starts the process that names contents, for the agent."""

from __future__ import annotations

import logging
import os
import subprocess
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from trainhub_node.data.data_cache import DataCache
from trainhub_node.supervisor.variables import LIBRARIES

log = logging.getLogger(__name__)
MAX_ERROR_CHARACTERS = 500


class ContentNamer:
    """One process at a time, in a thread of its own: the process ends with it. `command`: what starts a
    process of the agent. What is not done when the agent ends is done after the next download."""

    def __init__(self, cache: DataCache, command: Sequence[str]) -> None:
        self._cache = cache
        self._command = command
        self._is_waiting = False
        self._is_closing = False
        self._process: subprocess.Popen[str] | None = None
        # Guards the three above.
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(1, "contents")

    def submit(self) -> None:
        """Lets a process look at the cache, after the one that may be running."""
        with self._lock:
            if not self._is_closing and not self._is_waiting:
                self._is_waiting = True
                self._threads.submit(self._run)

    def close(self) -> None:
        with self._lock:
            self._is_closing = True
            if self._process is not None:
                self._process.kill()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _run(self) -> None:
        try:
            with self._lock:
                self._is_waiting = False
                if self._is_closing:
                    return
                self._process = self._start()
            _, errors = self._process.communicate()
        except OSError as error:
            log.warning("The process that names the contents of the cache could not be started: %s", error)
            return
        if self._process.returncode and not self._is_closing:
            log.warning(
                "Not all contents of the cache of data got their names; after the next download it is tried "
                "again: %s",
                errors.strip()[-MAX_ERROR_CHARACTERS:] or f"code {self._process.returncode}",
            )

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self._command, "contents", self._cache.folder],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd="/",
            # Nothing else of the agent's environment: it may hold the node's token.
            env={name: os.environ[name] for name in LIBRARIES if name in os.environ},
            # The kernel may weigh sessions against each other: this one gets the lowest weight.
            start_new_session=True,
        )
