"""Uploads the outputs of attempts that run, so that what a node has written is not lost with it."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import stat
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from trainhub_launch.order import NodeOrder, OrderKind
from trainhub_node.attempts import attempt_list
from trainhub_node.attempts.attempt_list import Attempts, Key
from trainhub_node.attempts.attempt_state import AttemptState
from trainhub_node.link.file_upload import FileUpload, UploadAbandoned
from trainhub_node.link.hub_client import RequestRejected
from trainhub_node.outputs.output_files import output_files
from trainhub_node.outputs.record import OutputRecord
from trainhub_node.rundir import RunDir
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
# Further ones wait for the end of the attempt: each report while it runs names all of them.
MAX_FILES = 1000
# Threads of the agent that upload take the processor from no rank.
NICENESS = 10


class EarlyUploads(threading.Thread):
    """The thread that does so, one file at a time. `files` uploads; `turn` keeps it and the upload at the
    end of an attempt apart; `on_change` is called when the hub has something new."""

    def __init__(
        self,
        attempts: Attempts,
        files: FileUpload,
        turn: Callable[[Key], AbstractContextManager[object]],
        on_change: Callable[[], None],
    ) -> None:
        super().__init__(name="early-outputs", daemon=True)
        self._attempts = attempts
        self._files = files
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
        if order.kind != OrderKind.RUN or order.outputs is not None or not state.is_running:
            return
        with self._turn(folder.key):
            # It may have ended while the upload at its end had its turn.
            if state.is_over:
                return
            if self._upload(folder):
                self._on_change()

    def _upload(self, folder: RunDir) -> bool:
        """Returns whether the hub has anything new."""
        began = time.monotonic()
        files = list(output_files(folder, lambda _: None))
        self._next_look[folder.key] = time.monotonic() + (time.monotonic() - began) / LOOK_SHARE
        record, is_new, names = OutputRecord(folder), False, set[str]()
        for name, path in files:
            names.add(name)
            is_known = name in record.files
            if self._closing.is_set() or (not is_known and len(record.files) >= MAX_FILES):
                continue
            if self._is_due(folder, name, path):
                is_new |= self._upload_file(folder, record, name, path)
        is_new |= record.forget_removed(names)
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
            self._due[folder.key, name] = math.inf
            return False
        took = time.monotonic() - began
        self._due[folder.key, name] = time.monotonic() + max(AGAIN_S, took / SHARE)
        return True

    def _is_due(self, folder: RunDir, name: str, path: str) -> bool:
        if self._due.get((folder.key, name), 0.0) > time.monotonic():
            return False
        try:
            fd = open_run_file(folder.work, path, attempt_list.read_owner(folder))
        except (OutsideFolder, OSError):
            return False
        try:
            facts = os.fstat(fd)
        finally:
            os.close(fd)
        return stat.S_ISREG(facts.st_mode) and time.time() - max(facts.st_mtime, facts.st_ctime) >= QUIET_S
