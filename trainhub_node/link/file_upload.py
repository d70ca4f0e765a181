"""Uploads one file to the hub, in pieces and by its content: what the hub has already is not sent again."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import time

from trainhub_node.attempts.attempt_list import Attempts
from trainhub_node.backoff import Backoff
from trainhub_node.link.hub_client import (
    HubClient,
    HubUnavailable,
    RequestRejected,
    TokenRejected,
    UploadOffsetMismatch,
    upload_chunks,
)
from trainhub_node.rundir import RunDir

log = logging.getLogger(__name__)
BLOCK = 1024 * 1024


class UploadAbandoned(Exception):
    """The hub has settled the attempt, or the agent is closing."""


class FileUpload:
    """Uploads files of tracked attempts; for any number of threads."""

    def __init__(self, hub: HubClient, attempts: Attempts) -> None:
        self._hub = hub
        self._attempts = attempts
        self._closing = False

    def close(self) -> None:
        """Ends all uploads at their next piece."""
        self._closing = True

    def deliver(self, folder: RunDir, fd: int, sha256: str, size: int) -> None:
        """Sends the first `size` bytes of the open file `fd`, however long the hub is away.

        Raises UploadAbandoned, RequestRejected, and OSError if the file has become shorter."""
        backoff = Backoff(max_s=5.0)
        rejections = 0
        while True:
            try:
                if self._send(fd, sha256, size):
                    return
            except UploadOffsetMismatch:
                # The next call reads the offset from the hub, so nothing needs to be corrected here.
                continue
            except (HubUnavailable, TokenRejected) as error:
                log.info("Waiting with files of run %s: %s", folder.run, error)
                time.sleep(backoff.next_s())
            except RequestRejected:
                # Perhaps an interrupted upload of other content had left bytes there; one retry.
                rejections += 1
                if rejections > 1:
                    raise
            if self._closing or not self._attempts.is_tracked(folder.key):
                raise UploadAbandoned

    def _send(self, fd: int, sha256: str, size: int) -> bool:
        offset, complete = self._hub.upload_state(sha256)
        if complete:
            # The hub has this content already, from another run or before a restart: files are stored by
            # their SHA-256.
            return True
        if size == 0:
            self._hub.upload(sha256, b"", 0, 0)
        for start, length in upload_chunks(size, offset):
            data = os.pread(fd, length, start)
            # The content has changed since it was hashed, so the hub would refuse all of it at the end.
            if len(data) < length:
                raise OSError(errno.EIO, "it became shorter while it was read")
            self._hub.upload(sha256, data, start, size)
            if self._closing:
                raise UploadAbandoned
        return self._hub.upload_state(sha256)[1]


def digest_of(fd: int, size: int) -> str:
    """Returns the SHA-256 of the first `size` bytes, because a file that grows all the time has no end."""
    digest = hashlib.sha256()
    for offset in range(0, size, BLOCK):
        digest.update(os.pread(fd, min(BLOCK, size - offset), offset))
    return digest.hexdigest()
