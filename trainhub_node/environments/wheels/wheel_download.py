"""Downloads the wheels of a lock from the hub, several at once, before uv installs them.

uv unpacks what it downloads while it comes, each wheel in one thread; the files of a wheel that is on the
disk it unpacks on all processors. So a set whose largest wheel is most of its bytes is installed sooner from
the disk. The wheels stay: with them uv needs no answer of the hub for the next environment."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import threading
import time
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import suppress
from http.client import HTTPException
from urllib import request
from urllib.parse import quote

from trainhub_node import records
from trainhub_node.environments.hub_connection import error_reason, hub_opener
from trainhub_node.supervisor.gang import Gang

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MAX_AT_ONCE = 4
BLOCK = 1024 * 1024
TIMEOUT_S = 30.0
STOP_CHECK_S = 0.25
LOG_INTERVAL_S = 5.0
# Below the folder: what was verified, and files that are not complete yet.
VERIFIED, PARTIAL = "verified", "partial"
_FILENAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+!-]{0,250}\.whl\Z")
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


class WheelDownload:
    """Puts the wheels (their SHA-256 by file name) into `folder`, which only this account writes."""

    def __init__(self, gang: Gang, folder: str, wheels: dict[str, str], write: Callable[[str], None]) -> None:
        self._gang = gang
        self._folder = folder
        self._wheels = wheels
        self._write = write
        self._bytes = 0
        self._has_stopped = threading.Event()

    def run(self) -> bool:
        """Returns whether all are there, and have the hash that the lock names. Raises StopRequested, and
        OSError if the disk is full."""
        for name in (VERIFIED, PARTIAL):
            os.makedirs(f"{self._folder}/{name}", mode=0o700, exist_ok=True)
        states = {name: self._verified_hash(name) for name in self._wheels}
        if any(states[name] not in ("", sha256) for name, sha256 in self._wheels.items()):
            # Another file of that name is in use by other environments: the one of this lock is streamed.
            return False
        missing = [name for name, sha256 in states.items() if not sha256]
        if not missing:
            return True
        try:
            self._download(missing)
        except (OSError, HTTPException, ValueError) as error:
            if isinstance(error, OSError) and error.errno in records.DISK_FULL:
                raise
            reason = error_reason(error) if isinstance(error, OSError) else error
            self._write(f"The wheels could not be downloaded at once ({reason}); uv downloads them.")
            return False
        return True

    def forget(self) -> None:
        """Has the next run download all of them anew: uv could not install these."""
        for name in self._wheels:
            with suppress(FileNotFoundError):
                os.unlink(f"{self._folder}/{VERIFIED}/{name}")

    def _download(self, names: Sequence[str]) -> None:
        next_line_at = time.monotonic() + LOG_INTERVAL_S
        opener = hub_opener(self._gang, self._gang.order["package_index"])
        with ThreadPoolExecutor(MAX_AT_ONCE) as threads:
            futures = {threads.submit(self._fetch, opener, name) for name in names}
            try:
                pending = futures
                while pending:
                    done, pending = wait(pending, STOP_CHECK_S, FIRST_EXCEPTION)
                    for future in done:
                        future.result()
                    self._gang.check_stop()
                    if time.monotonic() > next_line_at:
                        sentence = f"Downloading {len(names)} wheels: {self._bytes / 1e6:.0f} MB are here."
                        self._gang.log(sentence)
                        self._write(f"== {sentence}")
                        next_line_at = time.monotonic() + LOG_INTERVAL_S
            except BaseException:
                self._has_stopped.set()
                for future in futures:
                    future.cancel()
                raise

    def _fetch(self, opener: request.OpenerDirector, name: str) -> None:
        sha256 = self._wheels[name]
        url = f"{self._gang.order['package_index']}/files/{sha256}/{quote(name)}"
        headers = {"Authorization": f"Bearer {self._gang.order['package_ticket']}"}
        descriptor, partial = tempfile.mkstemp(dir=f"{self._folder}/{PARTIAL}")
        try:
            with os.fdopen(descriptor, "wb") as file:
                order = request.Request(url, None, headers)  # noqa: S310 - the hub's address
                with opener.open(order, timeout=TIMEOUT_S) as answer:
                    digest = self._copy(answer.read, file.write)
                if digest != sha256:
                    raise ValueError(f"the hash of {name} is not that of the lock")
                os.fchmod(descriptor, 0o444)
            os.rename(partial, f"{self._folder}/{name}")
            # Last: a wheel without this record counts as missing.
            with open(f"{self._folder}/{VERIFIED}/{name}", "w") as record:
                record.write(sha256)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(partial)

    def _copy(self, read: Callable[[int], bytes], write: Callable[[bytes], object]) -> str:
        """Returns the SHA-256 of what was read and written."""
        digest = hashlib.sha256()
        while piece := read(BLOCK):
            if self._has_stopped.is_set():
                raise OSError("it was stopped")
            write(piece)
            digest.update(piece)
            self._bytes += len(piece)
        return digest.hexdigest()

    def _verified_hash(self, name: str) -> str:
        """Returns the hash of the wheel of that name, "" if it is not there."""
        try:
            with open(f"{self._folder}/{VERIFIED}/{name}") as record:
                sha256 = record.read()
        except FileNotFoundError:
            return ""
        # A crash of the machine may have left an empty record.
        return sha256 if _SHA256.match(sha256) and os.path.isfile(f"{self._folder}/{name}") else ""


def wheels_of_lock(files: Sequence[object], lock: str) -> dict[str, str]:
    """Returns the SHA-256 of those wheels of the hub's answer that the lock allows, by file name, largest
    first, so that none is waited for at the end alone."""
    wheels: list[tuple[int, str, str]] = []
    for file in files:
        match file:
            case {"filename": str(name), "sha256": str(sha256), "size": int(size)} if (
                _FILENAME.match(name) and _SHA256.match(sha256) and f"sha256:{sha256}" in lock
            ):
                wheels.append((size, name, sha256))
    return {name: sha256 for _, name, sha256 in sorted(wheels, reverse=True)}
