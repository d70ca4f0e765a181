"""The content of `outputs.json`: which outputs of an attempt the hub has, so that a restarted agent continues
there."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from trainhub_node import records
from trainhub_node.attempts import attempt_list
from trainhub_node.link.file_upload import FileUpload, digest_of
from trainhub_node.outputs.output_files import OUTPUTS
from trainhub_node.rundir import RunDir
from trainhub_node.untrusted.beneath import OutsideFolder
from trainhub_node.untrusted.run_files import open_run_file, version_of_file

SAVE_EVERY_S = 0.5
UNREADABLE = "unreadable"


class FileElsewhere(NamedTuple):
    """A file in a datastore. `version`: which one it is, "" if nothing could change it any more when it was
    written; what is not "" also has its size and hash."""

    version: str = ""
    size: int = 0
    sha256: str = ""


class OutputRecord:
    """`files`: those that the hub has, as its reports name them; `elsewhere`: by name, those in a datastore
    of which the hub knows."""

    def __init__(self, folder: RunDir) -> None:
        self._folder = folder
        record: dict[str, Any] = records.read(folder.outputs_record) or {}
        self.files: dict[str, dict[str, Any]] = {file["path"]: file for file in record.get("files", ())}
        elsewhere = record.get("elsewhere", {})
        # Earlier agents wrote only when nothing could change any more, and kept the names alone.
        self.elsewhere: dict[str, FileElsewhere] = (
            {name: FileElsewhere(*facts) for name, facts in elsewhere.items()}
            if isinstance(elsewhere, dict)
            else dict.fromkeys(elsewhere, FileElsewhere())
        )
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

    def is_elsewhere(self, name: str, path: str) -> bool:
        """Returns whether the file at `path` below the working folder lies in the datastore as it is now."""
        there = self.elsewhere.get(name)
        return there is not None and there.version in {"", current_version(self._folder, path)}

    def removed_elsewhere(self, names: set[str]) -> list[str]:
        """Returns the names of files in the datastore that the script has removed since; `names`: those that
        were found now."""
        if not os.path.isdir(self._folder.work):
            # It was not the script that removed all of it: what was saved must stay.
            return []
        return sorted(name for name in self.elsewhere.keys() - names if self._is_removed(name))

    def forget_elsewhere(self, names: Iterable[str]) -> None:
        for name in names:
            self.elsewhere.pop(name, None)
        self._save_now_and_then()

    def _is_removed(self, name: str) -> bool:
        # See output_files for what is named how.
        paths = [f"{OUTPUTS}/{name}", *([name] if name.startswith("logs/") else [])]
        return all(_is_gone(f"{self._folder.work}/{path}") for path in paths)

    def note_elsewhere(self, files: Mapping[str, FileElsewhere]) -> None:
        self.elsewhere |= files
        self._save_now_and_then()

    def warn(self, sentence: str) -> None:
        self._warnings.append(sentence)

    def save(self) -> None:
        self._saved_at = time.monotonic()
        content: dict[str, object] = {"files": list(self.files.values()), "warnings": self._warnings}
        if self.elsewhere:
            content["elsewhere"] = {name: [*file] for name, file in self.elsewhere.items()}
        if self._versions:
            content["versions"] = self._versions
        records.write(self._folder.outputs_record, content)

    def _save_now_and_then(self) -> None:
        if time.monotonic() - self._saved_at > SAVE_EVERY_S:
            self.save()


def current_version(folder: RunDir, path: str) -> str:
    """Returns the version of the file that is at the path now, under its own name; one that no file has if
    it cannot be read."""
    try:
        fd = open_run_file(folder.work, path, attempt_list.read_owner(folder))
    except (OutsideFolder, OSError):
        return UNREADABLE
    try:
        return version_of_file(os.path.basename(path), os.fstat(fd))
    finally:
        os.close(fd)


def _is_gone(path: str) -> bool:
    """Returns whether there is nothing at the path, and not only no right or no way to see it."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False
