"""Uploads this node's part of a checkpoint, or writes it into a datastore, and tells the hub which files it
is. A part whose files changed meanwhile is reported as torn: the hub then keeps nothing of that
checkpoint."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from trainhub_launch.data.checkpoint_order import OrderedFile, part_folder
from trainhub_node.attempts import attempt_list
from trainhub_node.checkpoints.entries import Entry, read_entry
from trainhub_node.checkpoints.watched_folder import Contents
from trainhub_node.link.file_upload import FileUpload, digest_of
from trainhub_node.link.hub_client import HubClient, RequestRejected
from trainhub_node.rundir import RunDir
from trainhub_node.stores.store_files import StoreFiles, StoreUnusable
from trainhub_node.untrusted.beneath import OutsideFolder
from trainhub_node.untrusted.run_files import open_run_file, version_of_file

# Smaller ones are written again: a folder that has all of them is worth more than their bytes.
MIN_SHARED_BYTES = 1024 * 1024
# What the hub is told of a file.
FileFacts = dict[str, Any]


class _Torn(Exception):
    """The message says why, as a sentence without its full stop."""


@dataclass(frozen=True)
class PartRequest:
    """`is_whole`: no other node has a part of this checkpoint. `store`: where it is written; None = to the
    hub. `contents`: what lies there already; the files of this part are added."""

    number: int
    name: str
    is_whole: bool
    store: StoreFiles | None
    contents: Contents


@dataclass(frozen=True)
class _Part:
    """The part as it is on this node: the entry in the folder `place` of the attempt, None if there is no
    such entry."""

    folder: RunDir
    place: str
    entry: Entry | None
    request: PartRequest

    @property
    def is_whole(self) -> bool:
        """Whether another file may get the name of the checkpoint, which is one file, while it is taken: a
        script that saves more often than its node can deliver would never have a checkpoint otherwise."""
        return self.entry is not None and self.request.is_whole and self.entry.files == (self.request.name,)

    @property
    def version(self) -> str:
        """The version that such a file must have when it is opened; "" = any."""
        return self.entry.version if self.entry is not None and self.is_whole else ""


def deliver_part(
    hub: HubClient,
    uploads: FileUpload,
    folder: RunDir,
    place: str,
    request: PartRequest,
) -> str:
    """Delivers the part that the entry of this name in the folder `place` is; an empty one if there is no
    such entry. Returns the version that was delivered, "" if none was. Raises HubError, and
    UploadAbandoned."""
    part = _Part(folder, place, read_entry(folder.work, place, request.name), request)
    version, body = _hand_over(uploads, part, request.contents)
    try:
        hub.deliver_checkpoint_part(folder.run, folder.attempt, request.number, body)
    except RequestRejected:
        if not any("key" in file for file in body["files"]):
            raise
        # What it shares with an earlier checkpoint has been removed with that.
        request.contents.clear()
        version, body = _hand_over(uploads, part, {})
        hub.deliver_checkpoint_part(folder.run, folder.attempt, request.number, body)
    if request.store is not None:
        written = part_folder(request.number, version)
        for file in body["files"]:
            content = (file["size"], file["sha256"])
            request.contents[content] = file.get("key", f"{written}/{file['path']}")
    return version


def _hand_over(uploads: FileUpload, part: _Part, contents: Contents) -> tuple[str, dict[str, Any]]:
    """Uploads or writes the files. Returns the version that is there now, "" if none is, and what the hub is
    told."""
    folder, place, entry, request = part.folder, part.place, part.entry, part.request
    if entry is None:
        return "", {"files": []}
    body: dict[str, Any] = {}
    try:
        if entry.wrong:
            raise _Torn(entry.wrong)
        if request.store is None:
            sent = [_upload_file(uploads, folder, place, path, version=part.version) for path in entry.files]
            body["files"] = [dict(vars(file)) for file in sent]
        else:
            common = _find_common(part, entry, contents)
            body |= {"files": _write_to_store(request.store, part, entry, common), "stored": entry.version}
        if not part.is_whole:
            _check_unchanged(folder, place, entry)
    except _Torn as error:
        return "", {"files": [], "torn": f"{str(error).rstrip('.')}."}
    return entry.version, body


def _check_unchanged(folder: RunDir, place: str, entry: Entry) -> None:
    after = read_entry(folder.work, place, entry.name)
    if after is None or after.version != entry.version:
        raise _Torn("it was changed while it was being saved")


def _find_common(part: _Part, entry: Entry, contents: Contents) -> dict[str, FileFacts]:
    """Returns path -> what the hub is told of those files whose content lies in the store already."""
    sizes, common = {size for size, _ in contents if size >= MIN_SHARED_BYTES}, {}
    owner = attempt_list.read_owner(part.folder) if sizes else None
    for path in entry.files if sizes else ():
        try:
            fd = open_run_file(part.folder.work, f"{part.place}/{path}", owner)
        except (OutsideFolder, OSError):
            continue  # writing it says what is wrong
        try:
            before = os.fstat(fd)
            is_other = part.version and version_of_file(path, before) != part.version
            if is_other or before.st_size not in sizes:
                continue
            sha256 = digest_of(fd, before.st_size)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            key, after = contents.get((before.st_size, sha256)), os.fstat(fd)
        finally:
            os.close(fd)
        if key and (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns):
            common[path] = {"path": path, "size": before.st_size, "sha256": sha256, "key": key}
    return common


def _write_to_store(
    store: StoreFiles, part: _Part, entry: Entry, common: dict[str, FileFacts]
) -> list[FileFacts]:
    """Returns what the hub is told of the files of the entry once they are in the store; `common`: of those
    that need not be written. Raises _Torn and UploadAbandoned."""
    # What was delivered is never written again with another content, also by an agent that was started again.
    own = store.below(part_folder(part.request.number, entry.version))
    missing = [path for path in entry.files if path not in common]
    files = list(common.values())
    try:
        if missing:
            written = own.write((path, f"{part.place}/{path}", part.version) for path in missing)
            files += [{"path": path, "size": size, "sha256": sha256} for path, size, sha256 in written]
    except StoreUnusable as error:
        raise _Torn(f"it could not be written into the datastore: {error}") from error
    if unread := sorted({*entry.files} - {file["path"] for file in files}):
        raise _Torn(f"{unread[0]} was changed while it was being saved, or could not be read")
    return files


def _upload_file(
    uploads: FileUpload, folder: RunDir, place: str, path: str, *, version: str = ""
) -> OrderedFile:
    """Uploads the file. `version`: of an entry that is this file alone, which may lose its name meanwhile."""
    try:
        fd = open_run_file(folder.work, f"{place}/{path}", attempt_list.read_owner(folder))
    except OutsideFolder as error:
        raise _Torn(f"{path} is no file of the run") from error
    except OSError as error:
        raise _Torn(f"{path} could not be read: {error.strerror}") from error
    try:
        before = _version(fd)
        size = os.fstat(fd).st_size
        if version and version_of_file(path, os.fstat(fd)) != version:
            raise _Torn(f"{path} was replaced before it was saved")
        sha256 = digest_of(fd, size)
        uploads.deliver(folder, fd, sha256, size)
        # What the ranks read next must not be pushed out of the memory by what nobody reads again.
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        after = _version(fd)
        if version and os.fstat(fd).st_nlink == 0:
            # Losing its name has set the time of its last change of status, which comes last.
            before, after = before[:-1], after[:-1]
        if after != before:
            raise _Torn(f"{path} was changed while it was being saved")
    except RequestRejected as error:
        raise _Torn(f"{path}: {error}") from error
    except OSError as error:
        raise _Torn(f"{path} could not be read: {error.strerror}") from error
    finally:
        os.close(fd)
    return OrderedFile(path, size, sha256)


def _version(fd: int) -> tuple[int, ...]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
