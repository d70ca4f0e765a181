"""Uploads the files in outputs/ and logs/ after the ranks have ended; resumable, and addressed by content."""

from __future__ import annotations

import logging
import os
import stat
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from trainhub_launch.states import ErrorKind, Phase
from trainhub_node import records
from trainhub_node.attempts import attempt_list
from trainhub_node.attempts.attempt_list import Attempts, Key
from trainhub_node.link.file_upload import FileUpload, UploadAbandoned, digest_of
from trainhub_node.link.hub_client import HubClient, RequestRejected
from trainhub_node.rundir import RunDir
from trainhub_node.untrusted import beneath
from trainhub_node.untrusted.beneath import OutsideFolder
from trainhub_node.untrusted.run_files import open_run_file
from trainhub_node.untrusted.walk import walk_beneath

log = logging.getLogger(__name__)
SAVE_EVERY_S = 0.5
MAX_PATH = 900


class OutputUploads:
    """Uploads for attempts that are over, a few at a time, in threads of their own. `before` is called first
    for each, and may take long."""

    def __init__(
        self,
        hub: HubClient,
        attempts: Attempts,
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
        for name, path in output_files(folder, progress.warn):
            # Uploaded before the agent was restarted.
            if name in progress.files:
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
        self._warnings: list[str] = []
        self._saved_at = 0.0

    def add(self, path: str, size: int, sha256: str) -> None:
        self.files[path] = {"path": path, "size": size, "sha256": sha256}
        if time.monotonic() - self._saved_at > SAVE_EVERY_S:
            self.save()

    def warn(self, sentence: str) -> None:
        self._warnings.append(sentence)

    def save(self) -> None:
        self._saved_at = time.monotonic()
        records.write(self._path, {"files": list(self.files.values()), "warnings": self._warnings})


def output_files(folder: RunDir, warn: Callable[[str], None]) -> Iterator[tuple[str, str]]:
    """Yields (name, path below the working folder) of every file to upload.

    Files below outputs/ are named by their path there, files below logs/ as `logs/<path>`."""
    names: set[str] = set()
    try:
        root = beneath.open_root(folder.work)
    except FileNotFoundError:
        return  # it ended before its source was unpacked
    try:
        for top, prefix in (("outputs", ""), ("logs", "logs/")):
            for path, is_link in _files(root, top, warn):
                name = prefix + path[len(top) + 1 :]
                if not name.isprintable() or len(name) > MAX_PATH:
                    warn(f"{name!a} is not among the outputs: its name is too long or not plain text.")
                elif name in names:
                    warn(f"logs/{name[5:]} is not among the outputs: outputs/{name} has the same name.")
                elif is_link and _is_link_to_folder(root, path):
                    warn(f"{path} is a link to a folder; what is in it is not saved.")
                else:
                    names.add(name)
                    yield name, path
    finally:
        os.close(root)


def _files(root: int, top: str, warn: Callable[[str], None]) -> Iterator[tuple[str, bool]]:
    """Yields (path below `root`, whether it is a link) of everything in the folder `top` except folders."""
    try:
        mode = os.stat(top, dir_fd=root, follow_symlinks=False).st_mode
    except OSError:
        return  # a script may remove it
    if stat.S_ISLNK(mode):
        warn(f"{top} is a link; nothing in it is saved.")
    elif not stat.S_ISDIR(mode):
        warn(f"{top} is not a folder; it is not saved.")
    else:
        for folder in walk_beneath(root, top, max_path=MAX_PATH, on_error=partial(_warn_unreadable, warn)):
            yield from ((f"{folder.path}/{name}", name in folder.links) for name in folder.files)


def _is_link_to_folder(root: int, path: str) -> bool:
    """Returns whether a link leads to a folder below `root`; False for links that leave `root`."""
    try:
        entry = beneath.open_entry(root, path, follow_links=True)
    except OSError:
        return False
    try:
        return stat.S_ISDIR(os.fstat(entry).st_mode)
    finally:
        os.close(entry)


def _warn_unreadable(warn: Callable[[str], None], path: str, error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        warn(f"What is in the folder {path[:MAX_PATH]!a} is not saved: {error.strerror}.")
