"""Runs the process of the hub that lists or tests a store (see trainhub_launch.data.store_work)."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.conf import settings

from datastores.outgoing_proxy import OutgoingProxy
from trainhub_launch.data.store_errors import subject
from trainhub_launch.data.stores import Store

log = logging.getLogger(__name__)
POLL_S = 2.0
MAX_ERROR_BYTES = 16384
MODULE = "datastores.store_reader"


class StoreProcessFailed(Exception):
    """There is no result; the message is a sentence, "" if the hub itself is to blame."""


class StoreProcess:
    """The process that reads a store, behind a proxy that connects only to what the hub may reach. Its lines
    are read by a thread, so that one that says nothing more is noticed.

    `on_poll` is called every POLL_S seconds with the numbers of files and bytes up to now."""

    def __init__(
        self,
        store: Store,
        request: Mapping[str, object],
        on_poll: Callable[[int, int], None] = lambda *_: None,
    ) -> None:
        self._store = store
        self._request = request
        self._on_poll = on_poll
        self._result: dict[str, Any] = {}
        self._counts = (0, 0)

    def run(self, max_s: float, too_long: str) -> dict[str, Any]:
        """Returns what the process says at its end. Raises StoreProcessFailed: with `too_long` after `max_s`
        seconds."""
        with (
            OutgoingProxy() as proxy,
            started_process(self._store, self._request, proxy) as (process, errors),
        ):
            reader = threading.Thread(target=self._read, args=(process,), daemon=True)
            reader.start()
            try:
                self._follow(reader, time.monotonic() + max_s, too_long)
            finally:
                process.kill()
                reader.join()
            if "done" in self._result:
                return dict(self._result["done"])
            raise failure_of(self._store, proxy, self._result.get("error", ""), errors)

    def _follow(self, reader: threading.Thread, deadline: float, too_long: str) -> None:
        """Returns once the process says nothing more."""
        while reader.is_alive():
            reader.join(POLL_S)
            self._on_poll(*self._counts)
            if time.monotonic() > deadline:
                raise StoreProcessFailed(too_long)

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        for line in process.stdout or ():
            facts = json.loads(line)
            if "files" in facts:
                self._counts = (facts["files"], facts["bytes"])
            else:
                self._result = facts


@contextmanager
def started_process(
    store: Store, request: Mapping[str, object], proxy: OutgoingProxy
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Yields the process, whose standard output is a pipe, and the file with what it writes to its standard
    error. At the end the process is killed."""
    order, errors = os.memfd_create("request"), os.memfd_create("errors")
    content = {"store": store.to_json(), **request, "options": {"proxy_url": proxy.url}}
    try:
        # In memory: it has the secret.
        os.write(order, json.dumps(content).encode())
        os.lseek(order, 0, os.SEEK_SET)
        with subprocess.Popen(
            [sys.executable, "-m", MODULE],
            cwd=settings.BASE_DIR,
            env={"PATH": "/usr/bin:/bin"},
            stdin=order,
            stdout=subprocess.PIPE,
            stderr=errors,
        ) as process:
            try:
                yield process, errors
            finally:
                process.kill()
    finally:
        os.close(order)
        os.close(errors)


def failure_of(store: Store, proxy: OutgoingProxy, error: str, errors: int) -> StoreProcessFailed:
    """Returns why the process has no result. `error`: what it has said itself, "" if nothing."""
    if proxy.refused_host:
        return StoreProcessFailed(
            f"{subject(store)} is at an address that the hub does not connect to ({proxy.refused_host}). "
            "Name it by an address of the network."
        )
    if proxy.trouble:
        return StoreProcessFailed(f"{subject(store)} cannot be read: {proxy.trouble}.")
    if not error:
        words = os.pread(errors, MAX_ERROR_BYTES, 0).decode(errors="replace")
        log.error("The process that reads a store ended without a result: %s", words)
    return StoreProcessFailed(error)
