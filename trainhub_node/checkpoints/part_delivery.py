"""Uploads this node's part of a checkpoint, and tells the hub which files it is. A part whose files changed
meanwhile is reported as torn: the hub then keeps nothing of that checkpoint."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from trainhub_launch.order import OrderedFile
from trainhub_node.attempts import attempt_list
from trainhub_node.checkpoints.entries import Entry, read_entry, version_of_file
from trainhub_node.link.file_upload import FileUpload, digest_of
from trainhub_node.link.hub_client import HubClient, RequestRejected
from trainhub_node.rundir import RunDir
from trainhub_node.untrusted.beneath import OutsideFolder
from trainhub_node.untrusted.run_files import open_run_file


class _Torn(Exception):
    """The message says why, as a sentence without its full stop."""


@dataclass(frozen=True)
class PartRequest:
    """`is_whole`: no other node has a part of this checkpoint."""

    number: int
    name: str
    is_whole: bool


def deliver_part(
    hub: HubClient, uploads: FileUpload, folder: RunDir, place: str, request: PartRequest
) -> None:
    """Delivers the part that the entry of this name in the folder `place` is; an empty one if there is no
    such entry. Raises HubError, and UploadAbandoned."""
    number, name = request.number, request.name
    entry = read_entry(folder.work, place, name)
    part: dict[str, Any] = {"files": []}
    if entry is not None:
        try:
            if request.is_whole and entry.files == (name,) and not entry.wrong:
                files = [_upload_file(uploads, folder, place, name, version=entry.version)]
            else:
                files = _upload(uploads, folder, place, entry)
            part["files"] = [dict(vars(file)) for file in files]
        except _Torn as error:
            part["torn"] = f"{error}."
    hub.deliver_checkpoint_part(folder.run, folder.attempt, number, part)


def _upload(uploads: FileUpload, folder: RunDir, place: str, entry: Entry) -> list[OrderedFile]:
    """Returns the files of the entry once the hub has all of them. Raises _Torn."""
    if entry.wrong:
        raise _Torn(entry.wrong)
    files = [_upload_file(uploads, folder, place, path) for path in entry.files]
    after = read_entry(folder.work, place, entry.name)
    if after is None or after.version != entry.version:
        raise _Torn("it was changed while it was being saved")
    return files


def _upload_file(
    uploads: FileUpload, folder: RunDir, place: str, path: str, *, version: str = ""
) -> OrderedFile:
    """Uploads the file. `version`: of an entry that is this file alone. Another file may get its name while
    the hub takes this one: a script that saves more often than its node can deliver would never have a
    checkpoint otherwise."""
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
