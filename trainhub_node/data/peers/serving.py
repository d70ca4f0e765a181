"""Keeps the process running that gives this node's data to other nodes."""

from __future__ import annotations

import ipaddress
import json
import logging
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence

from trainhub_node.data.data_cache import DataCache
from trainhub_node.link.hub_client import HubClient, HubError
from trainhub_node.supervisor.variables import LIBRARIES

log = logging.getLogger(__name__)
CHECK_S = 10.0
RETRY_S = 60.0
BACKLOG = 64


class PeerServing:
    """`port`: see peer_port; `command`: what starts a process of the agent; `address_of` returns the address
    at which other nodes reach this one."""

    def __init__(
        self,
        cache: DataCache,
        hub: HubClient,
        port: int | None,
        command: Sequence[str],
        address_of: Callable[[], str],
    ) -> None:
        self._cache = cache
        self._hub = hub
        self._command = command
        self._address_of = address_of
        self._port = port
        self._closing = threading.Event()
        # The process ends with this thread, which therefore lives as long as the agent.
        self._thread = threading.Thread(target=self._run, name="peers", daemon=True)

    def start(self) -> None:
        if self._port is not None:
            self._thread.start()

    def close(self) -> None:
        self._closing.set()

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                self._serve()
            except (HubError, OSError) as error:
                log.info("This node gives no data to other nodes now: %s", error)
            self._closing.wait(RETRY_S)

    def _serve(self) -> None:
        """Returns when the process has ended, or the address of this node is another one."""
        address = self._address_of()
        with _listen(address, self._port or 0) as listener:
            port = listener.getsockname()[1]
            process = self._start(listener, self._hub.register_peer_server(address, port))
        try:
            while not self._closing.wait(CHECK_S):
                if process.poll() is not None:
                    log.warning("The process that gives data to other nodes has ended; another one starts")
                    return
                if self._address_of() != address:
                    return
        finally:
            process.kill()
            process.wait()

    def _start(self, listener: socket.socket, identity: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """`identity`: what the hub gives a node that serves others (see HubClient.register_peer_server)."""
        terms = json.dumps({"socket": listener.fileno(), **identity})
        # No file and no argument has the keys.
        stdin = os.memfd_create("peers", os.MFD_CLOEXEC)
        try:
            os.write(stdin, terms.encode())
            os.lseek(stdin, 0, os.SEEK_SET)
            return subprocess.Popen(
                [*self._command, "peers", self._cache.folder],
                stdin=stdin,
                cwd="/",
                env={name: os.environ[name] for name in LIBRARIES if name in os.environ},
                pass_fds=[listener.fileno()],
            )
        finally:
            os.close(stdin)


def _listen(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET
    return socket.create_server((address, port), family=family, backlog=BACKLOG)
