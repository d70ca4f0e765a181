"""Tells the hub which outputs of an attempt lie in a datastore."""

from __future__ import annotations

import time
from collections.abc import Callable

from trainhub_launch.json_types import JsonObject
from trainhub_node.backoff import Backoff
from trainhub_node.link.hub_client import HubClient, HubUnavailable, TokenRejected
from trainhub_node.rundir import RunDir

# As many as the hub takes in a request.
MOST_FILES = 500
SEND_EVERY_S = 5.0


class StoredOutputs:
    """Collects files and sends them together. `confirmed`: the names of those that the hub has recorded, or
    has left out with a warning; `check` is called between two requests, and may raise."""

    def __init__(self, hub: HubClient, folder: RunDir, check: Callable[[], None]) -> None:
        self._hub = hub
        self._folder = folder
        self._check = check
        self._pending: dict[str, JsonObject] = {}
        self._sent_at = time.monotonic()
        self.confirmed: set[str] = set()

    def add(self, name: str, size: int, sha256: str) -> None:
        self._pending[name] = {"path": name, "size": size, "sha256": sha256}
        if len(self._pending) >= MOST_FILES or time.monotonic() - self._sent_at > SEND_EVERY_S:
            self.send()

    def send(self) -> None:
        """Returns once the hub knows all of them, however long it is away. Raises RequestRejected, and what
        `check` raises."""
        backoff = Backoff(max_s=5.0)
        while self._pending:
            try:
                self._hub.note_stored_outputs(
                    self._folder.run, self._folder.attempt, [*self._pending.values()]
                )
            except (HubUnavailable, TokenRejected):
                time.sleep(backoff.next_s())
                self._check()
            else:
                self.confirmed.update(self._pending)
                self._pending.clear()
        self._sent_at = time.monotonic()
