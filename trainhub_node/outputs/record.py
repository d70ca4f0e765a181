"""The content of `outputs.json`: which outputs of an attempt the hub has, so that a restarted agent continues
there."""

from __future__ import annotations

import os
import time
from typing import Any

from trainhub_node import records
from trainhub_node.attempts import attempt_list
from trainhub_node.checkpoints.entries import version_of_file
from trainhub_node.link.file_upload import FileUpload, digest_of
from trainhub_node.outputs.output_files import OUTPUTS
from trainhub_node.rundir import RunDir
from trainhub_node.untrusted.run_files import open_run_file

SAVE_EVERY_S = 0.5


class OutputRecord:
    """`files`: those that the hub has, as its reports name them; `elsewhere`: names of files in a datastore,
    which the hub knows."""

    def __init__(self, folder: RunDir) -> None:
        self._folder = folder
        record: dict[str, Any] = records.read(folder.outputs_record) or {}
        self.files: dict[str, dict[str, Any]] = {file["path"]: file for file in record.get("files", ())}
        self.elsewhere: set[str] = set(record.get("elsewhere", ()))
        # Of files that were uploaded while the ranks ran, and may have been changed since.
        self._versions: dict[str, str] = record.get("versions", {})
        self._warnings: list[str] = []
        self._saved_at = 0.0

    def has(self, name: str, version: str) -> bool:
        """Returns whether this version of the file was uploaded. An earlier agent has uploaded files only
        when nothing could change them any more."""
        return name in self.files and self._versions.get(name, version) == version

    def upload(self, uploads: FileUpload, name: str, path: str, *, is_final: bool = True) -> bool:
        """Uploads the file at `path` below the working folder unless this version of it is there; `is_final`:
        even one that is being changed. Returns whether it was uploaded. Raises OutsideFolder, OSError,
        UploadAbandoned and RequestRejected."""
        folder = self._folder
        # Opened once and read by this descriptor only: the script may replace the file meanwhile by another
        # one or a link.
        fd = open_run_file(folder.work, path, attempt_list.read_owner(folder))
        try:
            version = version_of_file(name, os.fstat(fd))
            if self.has(name, version):
                return False
            size = os.fstat(fd).st_size
            sha256 = digest_of(fd, size)
            if not is_final and version_of_file(name, os.fstat(fd)) != version:
                return False
            uploads.deliver(folder, fd, sha256, size)
        finally:
            os.close(fd)
        self.files[name] = {"path": name, "size": size, "sha256": sha256}
        self._versions[name] = version
        self._save_now_and_then()
        return True

    def forget_removed(self, names: set[str]) -> bool:
        """Forgets files that the script has removed since; `names`: those that were found now. Returns
        whether there were any. What only cannot be read any more stays."""
        removed = [name for name in self.files.keys() - names if self._is_removed(name)]
        for name in removed:
            del self.files[name]
        return bool(removed)

    def _is_removed(self, name: str) -> bool:
        # See output_files for what is named how.
        paths = [f"{OUTPUTS}/{name}", *([name] if name.startswith("logs/") else [])]
        return all(_is_gone(f"{self._folder.work}/{path}") for path in paths)

    def note_elsewhere(self, names: set[str]) -> None:
        self.elsewhere |= names
        self._save_now_and_then()

    def warn(self, sentence: str) -> None:
        self._warnings.append(sentence)

    def save(self) -> None:
        self._saved_at = time.monotonic()
        content: dict[str, object] = {"files": list(self.files.values()), "warnings": self._warnings}
        if self.elsewhere:
            content["elsewhere"] = [*self.elsewhere]
        if self._versions:
            content["versions"] = self._versions
        records.write(self._folder.outputs_record, content)

    def _save_now_and_then(self) -> None:
        if time.monotonic() - self._saved_at > SAVE_EVERY_S:
            self.save()


def _is_gone(path: str) -> bool:
    """Returns whether there is nothing at the path, and not only no right or no way to see it."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False
