"""Uploads the outputs of attempts that run, so that what a node has written is not lost with it."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from trainhub_launch.data.outputs import StoreFolder
from trainhub_launch.order import NodeOrder, OrderKind
from trainhub_node import records
from trainhub_node.attempts import attempt_list
from trainhub_node.attempts.attempt_list import Attempts, Key
from trainhub_node.attempts.attempt_state import AttemptState
from trainhub_node.link.file_upload import FileUpload, UploadAbandoned
from trainhub_node.link.hub_client import HubUnavailable, RequestRejected, TokenRejected
from trainhub_node.outputs.output_files import OUTPUTS, PREFIXES, output_files
from trainhub_node.outputs.record import OutputRecord
from trainhub_node.outputs.store_outputs import StoreOutputs
from trainhub_node.rundir import RunDir
from trainhub_node.stores.store_files import StoreUnusable
from trainhub_node.untrusted.beneath import OutsideFolder
from trainhub_node.untrusted.run_files import open_run_file

log = logging.getLogger(__name__)
SCAN_S = 10.0
# Of the time, for looking at folders with very many files.
LOOK_SHARE = 0.05
# A file is uploaded once nobody has written to it for so long.
QUIET_S = 30.0
# One that is changed again and again: at most so often, and for a tenth of the time.
AGAIN_S, SHARE = 300.0, 0.1
# Further ones wait for the end of the attempt: each report while it runs names all that are on the hub.
MAX_FILES = 1000
# Stands for the name of a file where removing is meant.
REMOVAL = ""
# Threads of the agent that upload take the processor from no rank.
NICENESS = 10

# Name of an output and its path below the working folder.
File = tuple[str, str]


class EarlyOutputs(threading.Thread, ABC):
    """A thread that does so for all attempts, one after the other. `turn` keeps it and the upload at the end
    of an attempt apart; `on_change` is called when the hub has something new."""

    def __init__(
        self,
        attempts: Attempts,
        turn: Callable[[Key], AbstractContextManager[object]],
        on_change: Callable[[], None],
    ) -> None:
        super().__init__(name="early-outputs", daemon=True)
        self._attempts = attempts
        self._turn = turn
        self._on_change = on_change
        # By the monotonic clock: attempt -> when its folder is looked at again; attempt and name of a file ->
        # when that may be uploaded again.
        self._next_look: dict[Key, float] = {}
        self._due: dict[tuple[Key, str], float] = {}
        self._closing = threading.Event()

    def close(self) -> None:
        self._closing.set()

    def run(self) -> None:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        while not self._closing.wait(SCAN_S):
            folders = {folder.key: folder for folder in self._attempts.all()}
            self._next_look = {key: due for key, due in self._next_look.items() if key in folders}
            self._due = {place: due for place, due in self._due.items() if place[0] in folders}
            for folder in folders.values():
                if self._next_look.get(folder.key, 0.0) > time.monotonic():
                    continue
                try:
                    self._look(folder)
                except UploadAbandoned:
                    continue
                except Exception:
                    log.exception("Outputs of run %s, attempt %d", folder.run, folder.attempt)

    def _look(self, folder: RunDir) -> None:
        state = AttemptState(folder)
        order = NodeOrder.from_json(state.order())
        if order.kind != OrderKind.RUN or not state.is_running or not self.takes(order.outputs):
            return
        with self._turn(folder.key):
            # It may have ended while the upload at its end had its turn.
            if state.is_over:
                return
            began = time.monotonic()
            files = list(output_files(folder, lambda _: None, self.prefixes))
            self._next_look[folder.key] = time.monotonic() + (time.monotonic() - began) / LOOK_SHARE
            if self.upload(folder, files):
                self._on_change()

    @abstractmethod
    def takes(self, store: StoreFolder | None) -> bool:
        """Returns whether this thread uploads outputs that go to `store`, None for the hub."""

    @property
    @abstractmethod
    def prefixes(self) -> dict[str, str]:
        """See output_files."""

    @abstractmethod
    def upload(self, folder: RunDir, files: Sequence[File]) -> bool:
        """Uploads what is due of all files of the attempt. Returns whether the hub has anything new."""

    def is_due(self, folder: RunDir, file: File) -> bool:
        name, path = file
        if self._closing.is_set() or self._due.get((folder.key, name), 0.0) > time.monotonic():
            return False
        try:
            fd = open_run_file(folder.work, path, attempt_list.read_owner(folder))
        except (OutsideFolder, OSError):
            return False
        try:
            facts = os.fstat(fd)
        finally:
            os.close(fd)
        return time.time() - max(facts.st_mtime, facts.st_ctime) >= QUIET_S

    def note_tried(self, folder: RunDir, name: str, took_s: float) -> None:
        """Leaves the file alone for a while; math.inf: until the end of the attempt."""
        self._due[folder.key, name] = time.monotonic() + max(AGAIN_S, took_s / SHARE)


class EarlyUploads(EarlyOutputs):
    """Uploads to the hub, one file at a time. `files` uploads."""

    def __init__(
        self,
        attempts: Attempts,
        turn: Callable[[Key], AbstractContextManager[object]],
        on_change: Callable[[], None],
        files: FileUpload,
    ) -> None:
        super().__init__(attempts, turn, on_change)
        self._files = files

    def takes(self, store: StoreFolder | None) -> bool:
        return store is None

    @property
    def prefixes(self) -> dict[str, str]:
        return PREFIXES

    def upload(self, folder: RunDir, files: Sequence[File]) -> bool:
        record, is_new = OutputRecord(folder), False
        for name, path in files:
            is_known = name in record.files
            if (is_known or len(record.files) < MAX_FILES) and self.is_due(folder, (name, path)):
                is_new |= self._upload_file(folder, record, name, path)
        is_new |= record.forget_removed({name for name, _ in files})
        if is_new:
            record.save()
        return is_new

    def _upload_file(self, folder: RunDir, record: OutputRecord, name: str, path: str) -> bool:
        began = time.monotonic()
        try:
            if not record.upload(self._files, name, path, is_final=False):
                return False
        except (OutsideFolder, OSError):
            # The upload at the end says what is wrong.
            return False
        except RequestRejected as error:
            log.info("%s of run %s is uploaded when that ends: %s", name, folder.run, error)
            self.note_tried(folder, name, math.inf)
            return False
        self.note_tried(folder, name, time.monotonic() - began)
        return True


class EarlyStoreOutputs(EarlyOutputs):
    """Writes into datastores, all files that are due at a time. A thread of its own: a store that does not
    answer holds up nothing that goes to the hub. `outputs` writes."""

    def __init__(
        self,
        attempts: Attempts,
        turn: Callable[[Key], AbstractContextManager[object]],
        on_change: Callable[[], None],
        outputs: StoreOutputs,
    ) -> None:
        super().__init__(attempts, turn, on_change)
        self._outputs = outputs

    def takes(self, store: StoreFolder | None) -> bool:
        return store is not None

    @property
    def prefixes(self) -> dict[str, str]:
        return {OUTPUTS: PREFIXES[OUTPUTS]}

    def upload(self, folder: RunDir, files: Sequence[File]) -> bool:
        store = NodeOrder.from_json(records.read(folder.order)).outputs
        record, began = OutputRecord(folder), time.monotonic()
        room = max(0, MAX_FILES - len(record.elsewhere))
        old_files = [file for file in files if file[0] in record.elsewhere]
        new_files = [file for file in files if file[0] not in record.elsewhere][:room]
        due = [
            file
            for file in (*old_files, *new_files)
            if not record.is_elsewhere(*file) and self.is_due(folder, file)
        ]
        removed = record.removed_elsewhere({name for name, _ in files})
        if self._due.get((folder.key, REMOVAL), 0.0) > began:
            removed = []
        if store is None or (not due and not removed):
            return False
        # Should it fail, it is tried again as late as a file that was changed.
        for name, _ in due:
            self.note_tried(folder, name, 0.0)
        try:
            self._outputs.write(folder, store, record, due, is_final=False)
            for name, _ in due:
                self.note_tried(folder, name, time.monotonic() - began)
            self.note_tried(folder, REMOVAL, 0.0)
            self._outputs.remove(folder, store, record, removed, is_final=False)
            del self._due[folder.key, REMOVAL]
        except (StoreUnusable, RequestRejected, HubUnavailable, TokenRejected) as error:
            log.info("Outputs of run %s are written into the datastore later: %s", folder.run, error)
        finally:
            record.save()
        return True
