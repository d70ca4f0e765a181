"""Uploads the files in outputs/ and logs/ after the ranks have ended; resumable, and addressed by content.
What is in outputs/ is written into a datastore instead if the order names one."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from weakref import WeakValueDictionary

from trainhub_launch.data.outputs import StoreFolder
from trainhub_launch.order import NodeOrder
from trainhub_launch.states import ErrorKind, Phase
from trainhub_node import records
from trainhub_node.attempts import attempt_list
from trainhub_node.attempts.attempt_list import Attempts, Key
from trainhub_node.link.file_upload import FileUpload, UploadAbandoned
from trainhub_node.link.hub_client import HubClient, RequestRejected
from trainhub_node.outputs.early import EarlyStoreOutputs, EarlyUploads
from trainhub_node.outputs.output_files import OUTPUTS, PREFIXES, output_files
from trainhub_node.outputs.record import OutputRecord
from trainhub_node.outputs.store_outputs import StoreOutputs
from trainhub_node.run_secrets import RunSecrets
from trainhub_node.rundir import RunDir
from trainhub_node.stores.store_files import StoreUnusable
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
        self._busy: set[Key] = set()
        self._threads = ThreadPoolExecutor(2, "upload")
        self._closing = False
        self._lock = threading.Lock()
        # Each is there as long as somebody has its turn, or waits for it.
        self._turns: WeakValueDictionary[Key, threading.Lock] = WeakValueDictionary()
        self._store_outputs = StoreOutputs(hub, attempts, secrets, lambda: self._closing)
        self._early = (
            EarlyUploads(attempts, self._turn, on_change, self._files),
            EarlyStoreOutputs(attempts, self._turn, on_change, self._store_outputs),
        )

    def start(self) -> None:
        """Begins to upload outputs of attempts that run."""
        for thread in self._early:
            thread.start()

    def submit(self, folder: RunDir) -> None:
        """Called from one thread only; repeated calls for an attempt have no effect."""
        if folder.key not in self._busy:
            attempt_list.update_agent_record(folder, phase=Phase.UPLOADING)
            self._busy.add(folder.key)
            self._threads.submit(self._run, folder)

    def close(self) -> None:
        self._closing = True
        for thread in self._early:
            thread.close()
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
            if record.is_elsewhere(name, path):
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

    def _write(self, folder: RunDir, order: StoreFolder, record: OutputRecord) -> None:
        """Writes what is in outputs/ into a datastore, and tells the hub. What cannot be written there goes
        to the hub, so that nothing is lost."""
        outputs = list(output_files(folder, lambda _: None, {OUTPUTS: PREFIXES[OUTPUTS]}))
        missing = [file for file in outputs if not record.is_elsewhere(*file)]
        try:
            self._store_outputs.write(folder, order, record, missing, is_final=True)
        except (StoreUnusable, RequestRejected) as error:
            record.warn(f"Outputs could not be written to the datastore, and are on the hub instead: {error}")
        removed = record.removed_elsewhere({name for name, _ in outputs})
        try:
            self._store_outputs.remove(folder, order, record, removed, is_final=True)
            self._store_outputs.tell_again(folder, record)
        except (StoreUnusable, RequestRejected) as error:
            record.warn(f"What the script has removed from outputs/ stays in the datastore: {error}")
