"""Collects the hub's files into a backup: linked where they cannot change, else copied and hashed on the
way."""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from pathlib import Path

from trainhub.backup.backup_folder import StoredBackup, start_time
from trainhub.backup.data_folder import AUDIT_HEADS, BLOBS, FOLDERS, data_dir, key_paths
from trainhub.backup.file_copy import copy_file, link_file, make_folder, plain_files, write_pieces
from trainhub.backup.file_index import IndexedFile, IndexWriter, read_index
from trainhub.backup.object_references import read_referenced
from workspaces.stored_files import blobs
from workspaces.stored_files.blob_cache import local_blobs

FILES = "files"
# A file that changed this shortly before a backup may have changed again without showing it in its time.
SETTLED_NS = 2_000_000_000


class FileCollection:
    """Takes files into the new backup in `folder`. `previous`: the one before in the same folder, of which
    unchanged files are linked. `is_linked`: blobs are linked to the hub's own where that is possible."""

    def __init__(
        self, folder: Path, index: IndexWriter, previous: StoredBackup | None, *, is_linked: bool
    ) -> None:
        self.damaged: list[str] = []
        self.new_bytes = 0
        self._folder = folder
        self._index = index
        self._is_linked = is_linked
        self._previous = previous
        self._new_folders: set[str] = set()

    def add_audit_heads(self) -> None:
        heads = data_dir() / AUDIT_HEADS
        if heads.is_file():
            self._add(AUDIT_HEADS, str(heads), None)

    def add_folders(self) -> None:
        """Adds logs and everything else that is neither a blob nor a key."""
        earlier = self._previous_files()
        root, keys = str(data_dir()), key_paths()
        for name in FOLDERS:
            for entry in plain_files(os.path.join(root, name)):  # noqa: PTH118 - of many small files
                if not entry.name.startswith(".") and entry.path not in keys:
                    path = entry.path[len(root) + 1 :]
                    self._add(path, entry.path, earlier.get(path))

    def add_blobs(self, *, is_stored: bool, without: Collection[str] = ()) -> None:
        """Adds every content-addressed file of the disk. Its name is its hash: what is linked or there
        already is not read. `is_stored`: False only lists them. `without`: hashes of those to leave out."""
        for entry in local_blobs():
            if entry.name in without:
                continue
            try:
                facts = entry.stat(follow_symlinks=False)
                path = f"{BLOBS}/{entry.name[:2]}/{entry.name}"
                if is_stored and not self._store_blob(entry, self._folder.parent / path, facts.st_size):
                    self.damaged.append(entry.name)
                    continue
            except FileNotFoundError:
                # The hub found it damaged in this moment, and has set it aside.
                self.damaged.append(entry.name)
                continue
            self._index.add(IndexedFile(path, facts.st_size, entry.name, facts.st_mtime_ns))

    def add_objects(self, hashes: Collection[str]) -> None:
        """Adds the files of the object store that are not on the disk. Raises BackupError if the store does
        not give them."""
        for sha256 in sorted(hashes):
            path = f"{BLOBS}/{sha256[:2]}/{sha256}"
            target = self._folder.parent / path
            if (data_dir() / path).is_file():
                continue
            size = _size(target)
            if size is None:
                self._make_folder(str(target.parent))
                size = write_pieces(read_referenced(sha256), target, sha256)
                self.new_bytes += size or 0
            if size is None:
                self.damaged.append(sha256)
            else:
                self._index.add(IndexedFile(path, size, sha256, time.time_ns()))

    def _store_blob(self, entry: os.DirEntry[str], target: Path, size: int) -> bool:
        """Returns False if the hub's file does not have the content that its name says."""
        if _size(target) == size:
            return True
        self._make_folder(str(target.parent))
        target.unlink(missing_ok=True)
        if self._is_linked:
            self._is_linked = link_file(entry.path, target)
            if self._is_linked:
                return True
        part = target.with_name(f"{target.name}.part")
        part.unlink(missing_ok=True)
        try:
            is_intact = copy_file(entry.path, part, blobs.SEALED).sha256 == entry.name
            if is_intact:
                part.rename(target)
                self.new_bytes += size
        finally:
            part.unlink(missing_ok=True)
        return is_intact

    def _add(self, path: str, source: str, earlier: IndexedFile | None) -> None:
        name = f"{FILES}/{path}"
        target = f"{self._folder}/{name}"
        self._make_folder(target.rpartition("/")[0])
        if earlier is not None and self._link_unchanged(source, target, earlier):
            self._index.add(earlier)
            return
        try:
            copied = copy_file(source, target)
        except FileNotFoundError:
            # Replaced or removed since the folder was read. Whatever the database needs stays while a backup
            # holds deletions.
            return
        self.new_bytes += copied.size
        self._index.add(IndexedFile(name, *copied))

    def _link_unchanged(self, source: str, target: str, earlier: IndexedFile) -> bool:
        if self._previous is None:
            return False
        try:
            facts = os.stat(source, follow_symlinks=False)  # noqa: PTH116 - of many small files
            is_same = (facts.st_size, facts.st_mtime_ns) == (earlier.size, earlier.modified_ns)
            return is_same and link_file(self._previous.path(earlier), target)
        except FileNotFoundError:
            return False

    def _previous_files(self) -> dict[str, IndexedFile]:
        if self._previous is None:
            return {}
        started_at = int(start_time(self._previous.manifest.name).timestamp()) * 1_000_000_000
        prefix = f"{FILES}/"
        return {
            file.path.removeprefix(prefix): file
            for file in read_index(self._previous.folder)
            if file.path.startswith(prefix) and file.modified_ns < started_at - SETTLED_NS
        }

    def _make_folder(self, folder: str) -> None:
        if folder not in self._new_folders:
            make_folder(Path(folder))
            self._new_folders.add(folder)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None
