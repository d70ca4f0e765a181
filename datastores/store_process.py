"""Runs the process of the hub that lists or tests a store (see trainhub_launch.data.store_work)."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
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
        with OutgoingProxy() as proxy:
            errors = self._run(proxy.url, max_s, too_long)
            return self._done(proxy, errors)

    def _run(self, proxy: str, max_s: float, too_long: str) -> str:
        request, errors = os.memfd_create("request"), os.memfd_create("errors")
        content = {
            "store": self._store.to_json(),
            **self._request,
            "options": {"proxy_url": proxy},
        }
        try:
            # In memory: it has the secret.
            os.write(request, json.dumps(content).encode())
            os.lseek(request, 0, os.SEEK_SET)
            with subprocess.Popen(
                [sys.executable, "-m", MODULE],
                cwd=settings.BASE_DIR,
                env={"PATH": "/usr/bin:/bin"},
                stdin=request,
                stdout=subprocess.PIPE,
                stderr=errors,
            ) as process:
                reader = threading.Thread(target=self._read, args=(process,), daemon=True)
                reader.start()
                try:
                    self._follow(reader, time.monotonic() + max_s, too_long)
                finally:
                    process.kill()
                    reader.join()
            return os.pread(errors, MAX_ERROR_BYTES, 0).decode(errors="replace")
        finally:
            os.close(request)
            os.close(errors)

    def _follow(self, reader: threading.Thread, deadline: float, too_long: str) -> None:
        """Returns once the process says nothing more."""
        while reader.is_alive():
            reader.join(POLL_S)
            self._on_poll(*self._counts)
            if time.monotonic() > deadline:
                raise StoreProcessFailed(too_long)

    def _done(self, proxy: OutgoingProxy, errors: str) -> dict[str, Any]:
        if "done" in self._result:
            return dict(self._result["done"])
        if proxy.refused_host:
            raise StoreProcessFailed(
                f"{subject(self._store)} is at an address that the hub does not connect to "
                f"({proxy.refused_host}). Name it by an address of the network."
            )
        if proxy.trouble:
            raise StoreProcessFailed(f"{subject(self._store)} cannot be read: {proxy.trouble}.")
        if "error" in self._result:
            raise StoreProcessFailed(self._result["error"])
        log.error("The process that reads a store ended without a result: %s", errors)
        raise StoreProcessFailed("")

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        for line in process.stdout or ():
            facts = json.loads(line)
            if "files" in facts:
                self._counts = (facts["files"], facts["bytes"])
            else:
                self._result = facts
