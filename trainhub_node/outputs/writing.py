"""Has a process of its own write the outputs of an attempt into the datastore that its order names."""

from __future__ import annotations

import json
import logging
import os
import select
import subprocess
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from typing import IO, Any

from trainhub_launch.data.outputs import OutputOrder
from trainhub_node import records
from trainhub_node.data.library_process import store_variables
from trainhub_node.launch import wrapper
from trainhub_node.rundir import RunDir

log = logging.getLogger(__name__)
POLL_S = 1.0
END_S = 5.0
# A store is asked again for two minutes before it counts as gone; a file server may say nothing at all.
STALLED_S = 600.0
READ_BYTES = 65536
MAX_ERROR_BYTES = 16384


class NotWritten(Exception):
    """What is still missing cannot be written. The message is a sentence."""


class OutputWriting:
    """Writes the outputs of attempts; for any number of threads."""

    def written(
        self,
        folder: RunDir,
        order: OutputOrder,
        secret: str,
        known: Iterable[str],
        check: Callable[[], None],
    ) -> Iterator[tuple[str, int, str]]:
        """Yields (name, size, SHA-256) of each file that has been written. `known`: names that were written
        before; `check` is called all the time, and what it raises ends the process. Raises NotWritten."""
        terms = records.read(folder.terms)
        library = (terms.get("data") or {}).get("library", "")
        if not library:
            raise NotWritten("This node has no obstore, which writes into stores: install it for its agent.")
        request = {
            "store": order.store.to_json(),
            "path": order.path,
            "secret": secret,
            "attempt": folder.path,
            "account": terms.get("account"),
            "hidden": terms["hidden"],
            "known": [*known],
        }
        errors = os.memfd_create("errors", os.MFD_CLOEXEC)
        try:
            process = self._start(request, terms["pip"], library, errors)
            try:
                is_done = yield from self._results(process, check)
            finally:
                process.kill()
                # One that waits for a file server ends only when that answers, and is not waited for.
                with suppress(subprocess.TimeoutExpired):
                    process.wait(END_S)
                if process.stdout:
                    process.stdout.close()
            if not is_done:
                log.error("No result from a process that writes outputs: %s", _text(errors))
                raise NotWritten("The process that writes them has ended without a result.")
        finally:
            os.close(errors)

    def _start(
        self, request: dict[str, Any], settings: dict[str, str], library: str, errors: int
    ) -> subprocess.Popen[bytes]:
        # In memory: it has the secret.
        content = os.memfd_create("request", os.MFD_CLOEXEC)
        try:
            os.write(content, json.dumps(request).encode())
            os.lseek(content, 0, os.SEEK_SET)
            return subprocess.Popen(
                [*wrapper.AGENT_WRAPPER, "outputs", library],
                stdin=content,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd="/",
                env=store_variables(settings),
            )
        finally:
            os.close(content)

    def _results(
        self, process: subprocess.Popen[bytes], check: Callable[[], None]
    ) -> Generator[tuple[str, int, str], None, bool]:
        """Yields what has been written. Returns whether that is all."""
        for line in _lines(process.stdout, check) if process.stdout else ():
            if "file" in line:
                file = line["file"]
                yield file["path"], file["size"], file["sha256"]
            elif "error" in line:
                raise NotWritten(line["error"])
            elif "done" in line:
                return True
        return False


def _lines(output: IO[bytes], check: Callable[[], None]) -> Iterator[dict[str, Any]]:
    descriptor, pending, heard_at = output.fileno(), b"", time.monotonic()
    while True:
        check()
        if not select.select([descriptor], [], [], POLL_S)[0]:
            if time.monotonic() - heard_at > STALLED_S:
                raise NotWritten(
                    f"Nothing could be written for {STALLED_S:.0f} seconds: is its server there?"
                )
            continue
        data = os.read(descriptor, READ_BYTES)
        if not data:
            return
        heard_at = time.monotonic()
        *lines, pending = (pending + data).split(b"\n")
        yield from map(json.loads, lines)


def _text(descriptor: int) -> str:
    return os.pread(descriptor, MAX_ERROR_BYTES, 0).decode(errors="replace")
