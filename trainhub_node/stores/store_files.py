"""Has a process of its own write files of an attempt into a datastore, read them there, or remove them."""

from __future__ import annotations

import json
import logging
import os
import select
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import IO, Any

from trainhub_launch.data.outputs import StoreFolder
from trainhub_node import records
from trainhub_node.bootstrap_command import AGENT_WRAPPER
from trainhub_node.data.library_process import store_variables
from trainhub_node.rundir import RunDir

log = logging.getLogger(__name__)
POLL_S = 1.0
END_S = 5.0
# A store is asked again for two minutes before it counts as gone; a file server may say nothing at all.
STALLED_S = 600.0
READ_BYTES = 65536
MAX_ERROR_BYTES = 16384

Line = dict[str, Any]


class StoreUnusable(Exception):
    """The rest cannot be done. The message is a sentence."""


@dataclass(frozen=True)
class StoreFiles:
    """A folder of a datastore, as an attempt on this node uses it. `secret`: the value with which the
    datastore is used; `check` is called all the time, and what it raises ends the process.

    All methods raise StoreUnusable, and what `check` raises."""

    attempt: RunDir
    folder: StoreFolder
    secret: str
    check: Callable[[], None]

    def below(self, path: str) -> StoreFiles:
        """Returns a folder in this one."""
        return replace(self, folder=replace(self.folder, path=f"{self.folder.path}/{path}"))

    def write(self, files: Iterable[tuple[str, str, str]]) -> Iterator[tuple[str, int, str]]:
        """Writes files (name there, path below the working folder, its version or ""). Yields (name, size,
        SHA-256) of each that has been written. Those that cannot be read, and those that are changed
        meanwhile or have another version, are left out."""
        for line in self._lines({"task": "write", "files": [*files]}):
            if "file" in line:
                file = line["file"]
                yield file["path"], file["size"], file["sha256"]

    def read(self, files: Iterable[tuple[str, int, str]], into: str) -> None:
        """Reads files (name there, size, SHA-256) into the folder `into`, where each is named by its SHA-256.
        What is there already is not read again; one that is there in part, as SHA-256.part, is read from
        there on."""
        for _ in self._lines({"task": "read", "files": [*files], "into": into}):
            pass

    def remove(self, names: Iterable[str], keep: Iterable[str] = ()) -> None:
        """Removes the folders of these names with all that is in them but the files `keep`."""
        for _ in self._lines({"task": "remove", "names": [*names], "keep": [*keep]}):
            pass

    def remove_files(self, names: Iterable[str]) -> None:
        """Removes the files of these names."""
        for _ in self._lines({"task": "remove_files", "names": [*names]}):
            pass

    def _lines(self, task: Line) -> Iterator[Line]:
        """Yields what the process says, until it is done."""
        terms = records.read(self.attempt.terms)
        library = (terms.get("data") or {}).get("library", "")
        if not library:
            raise StoreUnusable("This node has no obstore, which uses stores: install it for its agent.")
        request = task | {
            "store": self.folder.store.to_json(),
            "path": self.folder.path,
            "secret": self.secret,
            "attempt": self.attempt.path,
            "account": terms.get("account"),
            "hidden": terms["hidden"],
        }
        errors = os.memfd_create("errors", os.MFD_CLOEXEC)
        try:
            process = _start(request, store_variables(terms, self.folder.store), library, errors)
            try:
                yield from self._until_done(process)
            finally:
                process.kill()
                # One that waits for a file server ends only when that answers, and is not waited for.
                with suppress(subprocess.TimeoutExpired):
                    process.wait(END_S)
                if process.stdout:
                    process.stdout.close()
        except EOFError as error:
            log.error("No result from a process that uses a store: %s", _text(errors))
            raise StoreUnusable("The process that uses the store has ended without a result.") from error
        finally:
            os.close(errors)

    def _until_done(self, process: subprocess.Popen[bytes]) -> Iterator[Line]:
        """Raises EOFError if the process ends without having said that it is done."""
        for line in _read_lines(process.stdout, self.check) if process.stdout else ():
            if "error" in line:
                raise StoreUnusable(line["error"])
            if "done" in line:
                return
            yield line
        raise EOFError


def _start(request: Line, variables: dict[str, str], library: str, errors: int) -> subprocess.Popen[bytes]:
    # In memory: it has the secret.
    content = os.memfd_create("request", os.MFD_CLOEXEC)
    try:
        view = memoryview(json.dumps(request).encode())
        while view:
            view = view[os.write(content, view) :]
        os.lseek(content, 0, os.SEEK_SET)
        return subprocess.Popen(
            [*AGENT_WRAPPER, "store-files", library],
            stdin=content,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd="/",
            env=variables,
        )
    finally:
        os.close(content)


def _read_lines(output: IO[bytes], check: Callable[[], None]) -> Iterator[Line]:
    descriptor, pending, heard_at = output.fileno(), b"", time.monotonic()
    while True:
        check()
        if not select.select([descriptor], [], [], POLL_S)[0]:
            if time.monotonic() - heard_at > STALLED_S:
                raise StoreUnusable(f"It did not answer for {STALLED_S:.0f} seconds: is its server there?")
            continue
        data = os.read(descriptor, READ_BYTES)
        if not data:
            return
        heard_at = time.monotonic()
        *lines, pending = (pending + data).split(b"\n")
        yield from map(json.loads, lines)


def _text(descriptor: int) -> str:
    return os.pread(descriptor, MAX_ERROR_BYTES, 0).decode(errors="replace")
