"""Writes outputs of attempts into a datastore, and tells the hub."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from trainhub_launch.data.outputs import StoreFolder
from trainhub_node.attempts.attempt_list import Attempts
from trainhub_node.attempts.attempt_state import AttemptState
from trainhub_node.backoff import Backoff
from trainhub_node.link.file_upload import UploadAbandoned
from trainhub_node.link.hub_client import HubClient, HubUnavailable, TokenRejected
from trainhub_node.outputs.record import FileElsewhere, OutputRecord, current_version
from trainhub_node.outputs.stored_outputs import StoredOutputs
from trainhub_node.run_secrets import RunSecrets
from trainhub_node.rundir import RunDir
from trainhub_node.stores.store_files import StoreFiles


class StoreOutputs:
    """`is_closing`: whether the agent ends. All methods raise StoreUnusable, RequestRejected, and
    UploadAbandoned once the attempt is not tracked any more."""

    def __init__(
        self, hub: HubClient, attempts: Attempts, secrets: RunSecrets, is_closing: Callable[[], bool]
    ) -> None:
        self._hub = hub
        self._attempts = attempts
        self._secrets = secrets
        self._is_closing = is_closing

    def write(
        self,
        folder: RunDir,
        order: StoreFolder,
        record: OutputRecord,
        files: Sequence[tuple[str, str]],
        *,
        is_final: bool,
    ) -> None:
        """Writes files (name, path below the working folder) and notes in `record` what the hub knows.
        `is_final`: nothing can change them any more. Otherwise one that changes meanwhile is left out, and
        UploadAbandoned is raised once the attempt is over."""
        if not files:
            return
        check = self._check(folder, is_final=is_final)
        stored = StoredOutputs(self._hub, folder, check)
        versions = {name: "" if is_final else current_version(folder, path) for name, path in files}
        ordered = ((name, path, versions[name]) for name, path in files)
        try:
            for name, size, sha256 in self._open(folder, order, check).write(ordered):
                stored.add(name, size, sha256)
                self._note(record, stored, versions)
        finally:
            stored.send()
            self._note(record, stored, versions)

    def tell_again(self, folder: RunDir, record: OutputRecord) -> None:
        """Tells the hub at the end what was written while the ranks ran: of files that were the same on
        several nodes it lists one, which may have become another one since."""
        stored = StoredOutputs(self._hub, folder, self._check(folder, is_final=True))
        for name, file in record.elsewhere.items():
            if file.version:
                stored.add(name, file.size, file.sha256)
        stored.send()

    def remove(
        self,
        folder: RunDir,
        order: StoreFolder,
        record: OutputRecord,
        names: Sequence[str],
        *,
        is_final: bool,
    ) -> None:
        """Removes files that were written there and that the script has removed since. `is_final`: as for
        `write`."""
        if not names:
            return
        check = self._check(folder, is_final=is_final)
        self._open(folder, order, check).remove_files(names)
        StoredOutputs(self._hub, folder, check).note_removed(names)
        record.forget_elsewhere(names)

    def _note(self, record: OutputRecord, stored: StoredOutputs, versions: dict[str, str]) -> None:
        record.note_elsewhere(
            {name: FileElsewhere(versions[name], *facts) for name, facts in stored.confirmed.items()}
        )

    def _open(self, folder: RunDir, order: StoreFolder, check: Callable[[], None]) -> StoreFiles:
        return StoreFiles(folder, order, self._secret(folder, order, check), check)

    def _secret(self, folder: RunDir, order: StoreFolder, check: Callable[[], None]) -> str:
        """Returns the credentials of the datastore, however long the hub is away: an agent that was started
        again has to ask."""
        backoff = Backoff(max_s=5.0)
        while order.secret_key:
            try:
                return self._secrets.fetch(folder).get(order.secret_key, "")
            except (HubUnavailable, TokenRejected):
                time.sleep(backoff.next_s())
                check()
        return ""

    def _check(self, folder: RunDir, *, is_final: bool) -> Callable[[], None]:
        state = AttemptState(folder)

        def check() -> None:
            is_unwanted = self._is_closing() or not self._attempts.is_tracked(folder.key)
            # The write at the end waits for this one, and writes only what is missing.
            if is_unwanted or (not is_final and state.is_over):
                raise UploadAbandoned

        return check
