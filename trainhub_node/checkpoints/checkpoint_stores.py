"""The datastores into which attempts write their checkpoints."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from trainhub_node.checkpoints.watched_folder import WatchedFolder
from trainhub_node.link.file_upload import UploadAbandoned
from trainhub_node.link.hub_client import HubClient, HubError
from trainhub_node.run_secrets import RunSecrets
from trainhub_node.rundir import RunDir
from trainhub_node.stores.store_files import StoreFiles, StoreUnusable

log = logging.getLogger(__name__)


class CheckpointStores:
    """Opens them, and removes what the hub does not keep any more. `check` is called all the time, and raises
    UploadAbandoned once nothing more is to be done for an attempt."""

    def __init__(self, hub: HubClient, secrets: RunSecrets, check: Callable[[RunDir], None]) -> None:
        self._hub = hub
        self._secrets = secrets
        self._check = check

    def open(self, watched: WatchedFolder) -> StoreFiles | None:
        """Returns where the checkpoints of the attempt are written; None = to the hub. Raises HubError if the
        hub does not give the credentials."""
        if watched.store is None:
            return None
        folder = watched.folder
        secret = self._secrets.fetch(folder).get(watched.store.secret_key, "")
        return StoreFiles(folder, watched.store, secret, lambda: self._check(folder))

    def remove_surplus(self, watched: WatchedFolder) -> None:
        """Removes the files of `watched.surplus`. The next answer of the hub names again what fails."""
        surplus = watched.take_surplus()
        numbers = sorted(surplus)
        try:
            self._remove(watched, surplus)
        except HubError as error:
            log.info("Checkpoints %s of run %s are removed later: %s", numbers, watched.folder.run, error)
        except UploadAbandoned:
            return
        except Exception:
            # The thread that runs this would keep it to itself.
            log.exception("Checkpoints %s of run %s are not removed", numbers, watched.folder.run)

    def _remove(self, watched: WatchedFolder, surplus: Mapping[int, list[str]]) -> None:
        store = self.open(watched) if surplus else None
        if store is None:
            return
        problem = ""
        try:
            store.remove(map(str, surplus), keep=[key for keys in surplus.values() for key in keys])
        except StoreUnusable as error:
            problem = str(error)
        whole = [number for number, keys in surplus.items() if not keys]
        partial = [number for number, keys in surplus.items() if keys]
        self._hub.note_removed_checkpoints(*watched.folder.key, whole, problem, partial)
