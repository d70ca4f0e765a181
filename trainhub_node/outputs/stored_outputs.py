"""Tells the hub which outputs of an attempt lie in a datastore."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from trainhub_launch.data.outputs import MOST_NOTED
from trainhub_launch.json_types import JsonObject
from trainhub_node.backoff import Backoff
from trainhub_node.link.hub_client import HubClient, HubUnavailable, TokenRejected
from trainhub_node.rundir import RunDir

SEND_EVERY_S = 5.0


class StoredOutputs:
    """Collects files and sends them together. `confirmed`: name -> size and SHA-256 of those that the hub has
    recorded, or has left out with a warning; `check` is called between two requests, and may raise."""

    def __init__(self, hub: HubClient, folder: RunDir, check: Callable[[], None]) -> None:
        self._hub = hub
        self._folder = folder
        self._check = check
        self._pending: dict[str, tuple[int, str]] = {}
        self._sent_at = time.monotonic()
        self.confirmed: dict[str, tuple[int, str]] = {}

    def add(self, name: str, size: int, sha256: str) -> None:
        self._pending[name] = (size, sha256)
        if len(self._pending) >= MOST_NOTED or time.monotonic() - self._sent_at > SEND_EVERY_S:
            self.send()

    def note_removed(self, names: Sequence[str]) -> None:
        """Returns once the hub knows that these are not there any more. Raises as `send`."""
        for start in range(0, len(names), MOST_NOTED):
            self._tell([], names[start : start + MOST_NOTED])

    def send(self) -> None:
        """Returns once the hub knows all of them, however long it is away. Raises RequestRejected, and what
        `check` raises."""
        if self._pending:
            files: list[JsonObject] = [
                {"path": name, "size": size, "sha256": sha256}
                for name, (size, sha256) in self._pending.items()
            ]
            self._tell(files, [])
            self.confirmed.update(self._pending)
            self._pending.clear()
        self._sent_at = time.monotonic()

    def _tell(self, files: Sequence[JsonObject], removed: Sequence[str]) -> None:
        backoff = Backoff(max_s=5.0)
        while True:
            try:
                self._hub.note_stored_outputs(*self._folder.key, files, removed)
            except (HubUnavailable, TokenRejected):
                time.sleep(backoff.next_s())
                self._check()
            else:
                return
