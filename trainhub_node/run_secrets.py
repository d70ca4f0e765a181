"""The values of the secrets that attempts use. They are kept in the agent's memory and in no file of the
node.

The agent asks the hub for them before it starts an attempt, and again after a restart, because it needs them
to mask the logs."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from trainhub_launch.data.checkpoint_order import CheckpointOrder
from trainhub_launch.data.downloads import DataDownload
from trainhub_launch.data.outputs import StoreFolder
from trainhub_node import records
from trainhub_node.attempts.attempt_list import Key
from trainhub_node.attempts.log_mask import LogMask
from trainhub_node.intake.secret_values import SecretValues
from trainhub_node.link.hub_client import HubClient, HubUnavailable, RequestRejected
from trainhub_node.rundir import RunDir

log = logging.getLogger(__name__)


class RunSecrets:
    """The secrets of the attempts that this agent tracks. Methods may be called from any thread."""

    def __init__(self, hub: HubClient) -> None:
        self._hub = hub
        self._lock = threading.Lock()
        self._values: dict[Key, SecretValues] = {}
        self._masks: dict[Key, LogMask] = {}

    def fetch(self, folder: RunDir) -> Mapping[str, str]:
        """Returns the values for an attempt that has an order, from the hub if they are not known. Raises
        HubUnavailable, and RequestRejected if the hub refuses them."""
        with self._lock:
            existing = self._values.get(folder.key)
        if existing is not None:
            return existing.values
        values = SecretValues({}, ())
        if any(secret_names(records.read(folder.order))):
            nonce = records.read(folder.claim)["nonce"]
            try:
                values = self._hub.secrets(folder.run, folder.attempt, nonce)
            except RequestRejected:
                # Nothing else will ever be known: what the attempt still says must not wait for it.
                self._remember(folder, values)
                raise
        self._remember(folder, values)
        return values.values

    def refetch(self, folder: RunDir) -> None:
        """Fetches the values for an attempt that an earlier agent started. If the hub refuses, its logs are
        masked for the run's token only. Does nothing while the hub does not answer."""
        try:
            self.fetch(folder)
        except HubUnavailable as error:
            log.info("Waiting for the secrets of run %s, to mask its logs: %s", folder.run, error)
        except RequestRejected as error:
            log.warning("The logs of run %s are no longer masked for its secrets: %s", folder.run, error)

    def mask_of(self, folder: RunDir) -> LogMask | None:
        """Returns the mask of the attempt's logs; None while its secrets are not known, so that no log may
        leave."""
        with self._lock:
            mask = self._masks.get(folder.key)
        if mask is None and not any(secret_names(records.read(folder.order))):
            self._remember(folder, SecretValues({}, ()))
            mask = self._masks.get(folder.key)
        return mask

    def forget(self, key: Key) -> None:
        with self._lock:
            self._values.pop(key, None)
            self._masks.pop(key, None)

    def _remember(self, folder: RunDir, values: SecretValues) -> None:
        order = records.read(folder.order)
        texts = [*order.get("masked", ()), *values.masked]
        mask = LogMask(texts, masks_signatures=bool(order.get("references")))
        with self._lock:
            self._values[folder.key] = values
            self._masks[folder.key] = mask


def secret_names(order: Mapping[str, Any]) -> Iterator[str]:
    """Yields the names of the secrets that an order (as JSON) needs: its plan sets variables to them, or data
    is read with them, taken from other nodes, or written with them."""
    command = order["command"]
    environments = [process["env"] for process in command["processes"]]
    for environment in (*environments, command.get("launcher_env", {})):
        for value in environment.values():
            if isinstance(value, dict) and value.get("kind") == "secret":
                yield value["name"]
    for item in (*order.get("downloads", {}).values(), *order.get("references", {}).values()):
        download = DataDownload.from_json(item)
        yield from filter(None, (download.secret_key, download.peer_key))
    if outputs := order.get("outputs"):
        yield from filter(None, [StoreFolder.from_json(outputs).secret_key])
    if checkpoint := order.get("checkpoint"):
        yield from CheckpointOrder.from_json(checkpoint).secret_keys


def as_file(values: Mapping[str, str]) -> int:
    """Returns a descriptor from which a child reads the values. What it names lies in memory and has no
    path."""
    descriptor = os.memfd_create("secrets", os.MFD_CLOEXEC)
    view = memoryview(records.dumps(dict(values)))
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
