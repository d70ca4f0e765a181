"""Uploads the files in outputs/ and logs/ after the ranks have ended; resumable, and addressed by content.
What is in outputs/ is written into a datastore instead if the order names one."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from trainhub_launch.data.outputs import OutputOrder
from trainhub_launch.order import NodeOrder
from trainhub_launch.states import ErrorKind, Phase
from trainhub_node import records
from trainhub_node.attempts import attempt_list
from trainhub_node.attempts.attempt_list import Attempts, Key
from trainhub_node.backoff import Backoff
from trainhub_node.launch.run_secrets import RunSecrets
from trainhub_node.link.file_upload import FileUpload, UploadAbandoned
from trainhub_node.link.hub_client import HubClient, HubUnavailable, RequestRejected, TokenRejected
from trainhub_node.outputs.early import EarlyUploads
from trainhub_node.outputs.output_files import output_files
from trainhub_node.outputs.record import OutputRecord
from trainhub_node.outputs.stored_outputs import StoredOutputs
from trainhub_node.outputs.writing import NotWritten, OutputWriting
from trainhub_node.rundir import RunDir
from trainhub_node.untrusted.beneath import OutsideFolder

log = logging.getLogger(__name__)


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
        self._lock = threading.Lock()
        self._turns: dict[Key, threading.Lock] = {}
        self._early = EarlyUploads(attempts, self._files, self._turn, on_change)

    def start(self) -> None:
        """Begins to upload outputs of attempts that run."""
        self._early.start()

    def submit(self, folder: RunDir) -> None:
        """Called from one thread only; repeated calls for an attempt have no effect."""
        if folder.key not in self._busy:
            attempt_list.update_agent_record(folder, phase=Phase.UPLOADING)
            self._busy.add(folder.key)
            self._threads.submit(self._run, folder)

    def close(self) -> None:
        self._closing = True
        self._early.close()
        self._files.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _run(self, folder: RunDir) -> None:
        try:
            self._before(folder)
            with self._turn(folder.key):
                self._upload(folder)
            attempt_list.update_agent_record(folder, phase=Phase.DONE)
        except UploadAbandoned:
            return
        except Exception as error:
            log.exception("Outputs of run %s, attempt %d", folder.run, folder.attempt)
            self._record_failure(folder, error)
        self._on_change()

    @contextmanager
    def _turn(self, key: Key) -> Iterator[None]:
        """One at a time uploads outputs of an attempt."""
        with self._lock:
            lock = self._turns.setdefault(key, threading.Lock())
        with lock:
            yield

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
        record = OutputRecord(folder)
        order = NodeOrder.from_json(records.read(folder.order)).outputs
        if order is not None:
            self._write(folder, order, record)
        names = set[str]()
        for name, path in output_files(folder, record.warn):
            names.add(name)
            if name in record.elsewhere:
                continue
            try:
                record.upload(self._files, name, path)
            except OutsideFolder:
                record.warn(
                    f"{name} is not among the outputs: it is a link out of the run's folder, or no file."
                )
            except OSError as error:
                record.warn(f"{name} is not among the outputs: {error.strerror}.")
            except RequestRejected as error:
                attempt_list.update_agent_record(
                    folder, error=attempt_list.as_sentence(f"{name}: {error}"), error_kind=ErrorKind.UPLOAD
                )
        record.forget_removed(names)
        record.save()

    def _write(self, folder: RunDir, order: OutputOrder, record: OutputRecord) -> None:
        """Writes what is in outputs/ into a datastore, and tells the hub. What cannot be written there goes
        to the hub, so that nothing is lost."""
        told = StoredOutputs(self._hub, folder, lambda: self._check(folder))
        try:
            written = self._writing.written(
                folder, order, self._secret(folder, order), record.elsewhere, lambda: self._check(folder)
            )
            try:
                for name, size, sha256 in written:
                    told.add(name, size, sha256)
                    record.note_elsewhere(told.confirmed)
            finally:
                told.send()
        except (NotWritten, RequestRejected) as error:
            record.warn(f"Outputs could not be written to the datastore, and are on the hub instead: {error}")
        record.note_elsewhere(told.confirmed)

    def _secret(self, folder: RunDir, order: OutputOrder) -> str:
        """Returns the credentials of the datastore, however long the hub is away: an agent that was started
        again has to ask. Raises UploadAbandoned and RequestRejected."""
        backoff = Backoff(max_s=5.0)
        while order.secret_key:
            try:
                return self._secrets.fetch(folder).get(order.secret_key, "")
            except (HubUnavailable, TokenRejected):
                time.sleep(backoff.next_s())
                self._check(folder)
        return ""

    def _check(self, folder: RunDir) -> None:
        """Raises UploadAbandoned."""
        if self._closing or not self._attempts.is_tracked(folder.key):
            raise UploadAbandoned
