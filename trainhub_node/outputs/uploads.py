"""Uploads the files in outputs/ and logs/ after the ranks have ended; resumable, and addressed by content.
What is in outputs/ is written into a datastore instead if the order names one."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from trainhub_launch.data.outputs import OutputOrder
from trainhub_launch.order import NodeOrder
from trainhub_launch.states import ErrorKind, Phase
from trainhub_node import records
from trainhub_node.attempts import attempt_list
from trainhub_node.attempts.attempt_list import Attempts, Key
from trainhub_node.launch.run_secrets import RunSecrets
from trainhub_node.link.file_upload import FileUpload, UploadAbandoned, digest_of
from trainhub_node.link.hub_client import HubClient, RequestRejected
from trainhub_node.outputs.output_files import output_files
from trainhub_node.outputs.stored_outputs import StoredOutputs
from trainhub_node.outputs.writing import NotWritten, OutputWriting
from trainhub_node.rundir import RunDir
from trainhub_node.untrusted.beneath import OutsideFolder
from trainhub_node.untrusted.run_files import open_run_file

log = logging.getLogger(__name__)
SAVE_EVERY_S = 0.5


class OutputUploads:
    """Uploads for attempts that are over, a few at a time, in threads of their own. `before` is called first
    for each, and may take long."""

    def __init__(
        self,
        hub: HubClient,
        attempts: Attempts,
        secrets: RunSecrets,
        *,
        before: Callable[[RunDir], None] = lambda _: None,
        on_change: Callable[[], None],
    ) -> None:
        self._before = before
        self._on_change = on_change
        self._files = FileUpload(hub, attempts)
        self._hub = hub
        self._attempts = attempts
        self._secrets = secrets
        self._writing = OutputWriting()
        self._busy: set[Key] = set()
        self._threads = ThreadPoolExecutor(2, "upload")
        self._closing = False

    def submit(self, folder: RunDir) -> None:
        """Called from one thread only; repeated calls for an attempt have no effect."""
        if folder.key not in self._busy:
            attempt_list.update_agent_record(folder, phase=Phase.UPLOADING)
            self._busy.add(folder.key)
            self._threads.submit(self._run, folder)

    def close(self) -> None:
        self._closing = True
        self._files.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _run(self, folder: RunDir) -> None:
        try:
            self._before(folder)
            self._upload(folder)
            attempt_list.update_agent_record(folder, phase=Phase.DONE)
        except UploadAbandoned:
            return
        except Exception as error:
            log.exception("Outputs of run %s, attempt %d", folder.run, folder.attempt)
            self._record_failure(folder, error)
        self._on_change()

    def _record_failure(self, folder: RunDir, error: Exception) -> None:
        while not self._closing:
            try:
                # Without this record the hub would wait for the outputs for ever.
                attempt_list.update_agent_record(
                    folder,
                    phase=Phase.DONE,
                    error=attempt_list.as_sentence(error),
                    error_kind=ErrorKind.UPLOAD,
                )
            except OSError:
                time.sleep(1)  # the disk is full; the error must still be recorded
            else:
                return

    def _upload(self, folder: RunDir) -> None:
        progress = _UploadProgress(folder)
        order = NodeOrder.from_json(records.read(folder.order)).outputs
        if order is not None:
            self._write(folder, order, progress)
        for name, path in output_files(folder, progress.warn):
            # Uploaded before the agent was restarted, or written into a datastore.
            if name in progress.files or name in progress.elsewhere:
                continue
            try:
                self._upload_file(folder, name, path, progress)
            except OutsideFolder:
                progress.warn(
                    f"{name} is not among the outputs: it is a link out of the run's folder, or no file."
                )
            except OSError as error:
                progress.warn(f"{name} is not among the outputs: {error.strerror}.")
            except RequestRejected as error:
                attempt_list.update_agent_record(
                    folder, error=attempt_list.as_sentence(f"{name}: {error}"), error_kind=ErrorKind.UPLOAD
                )
        progress.save()

    def _write(self, folder: RunDir, order: OutputOrder, progress: _UploadProgress) -> None:
        """Writes what is in outputs/ into a datastore, and tells the hub. What cannot be written there goes
        to the hub, so that nothing is lost."""
        told = StoredOutputs(self._hub, folder, lambda: self._check(folder))
        try:
            secret = self._secrets.fetch(folder).get(order.secret_key, "") if order.secret_key else ""
            for name, size, sha256 in self._writing.written(
                folder, order, secret, progress.elsewhere, lambda: self._check(folder)
            ):
                told.add(name, size, sha256)
                progress.note_elsewhere(told.confirmed)
        except (NotWritten, RequestRejected) as error:
            progress.warn(
                f"Outputs could not be written to the datastore, and are on the hub instead: {error}"
            )
        told.send()
        progress.note_elsewhere(told.confirmed)

    def _check(self, folder: RunDir) -> None:
        """Raises UploadAbandoned."""
        if self._closing or not self._attempts.is_tracked(folder.key):
            raise UploadAbandoned

    def _upload_file(self, folder: RunDir, name: str, path: str, progress: _UploadProgress) -> None:
        # Opened once and read by this descriptor only: the script may replace the file meanwhile by another
        # one or a link.
        fd = open_run_file(folder.work, path, attempt_list.read_owner(folder))
        try:
            size = os.fstat(fd).st_size
            sha256 = digest_of(fd, size)
            self._files.deliver(folder, fd, sha256, size)
        finally:
            os.close(fd)
        progress.add(name, size, sha256)


class _UploadProgress:
    """The content of `outputs.json`: the files uploaded so far, so that a restarted agent continues there."""

    def __init__(self, folder: RunDir) -> None:
        self._path = folder.outputs_record
        record: dict[str, Any] = records.read(self._path) or {}
        self.files: dict[str, dict[str, Any]] = {file["path"]: file for file in record.get("files", ())}
        # Names of files in a datastore, which the hub knows.
        self.elsewhere: set[str] = set(record.get("elsewhere", ()))
        self._warnings: list[str] = []
        self._saved_at = 0.0

    def add(self, path: str, size: int, sha256: str) -> None:
        self.files[path] = {"path": path, "size": size, "sha256": sha256}
        if time.monotonic() - self._saved_at > SAVE_EVERY_S:
            self.save()

    def note_elsewhere(self, names: set[str]) -> None:
        self.elsewhere |= names
        if time.monotonic() - self._saved_at > SAVE_EVERY_S:
            self.save()

    def warn(self, sentence: str) -> None:
        self._warnings.append(sentence)

    def save(self) -> None:
        self._saved_at = time.monotonic()
        record = {"files": list(self.files.values()), "warnings": self._warnings}
        records.write(self._path, record | ({"elsewhere": [*self.elsewhere]} if self.elsewhere else {}))
