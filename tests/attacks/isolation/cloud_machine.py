"""A network of its own for the tests, in which a server answers as the metadata service of a cloud does."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.attacks.isolation.attempts import MARK
from trainhub_node.isolation import syscalls

CLONE_NEWNET = 0x40000000
ADDRESSES = ("169.254.169.254/32", "fd00:ec2::254/128")


class _Server(ThreadingHTTPServer):
    address_family = socket.AF_INET6
    daemon_threads = True


class _Credentials(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(MARK.encode())

    def log_message(self, format: str, *args: object) -> None: ...


@contextmanager
def cloud_machine() -> Iterator[int]:
    """Moves this thread, and all that it starts, to a network of its own. Yields the port of what stands for
    the hub's broker, which accepts connections and says nothing."""
    with ExitStack() as stack:
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        stack.callback(os.close, before)
        syscalls.unshare(CLONE_NEWNET)
        stack.callback(syscalls.setns, before, CLONE_NEWNET)
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        for address in ADDRESSES:
            subprocess.run(["ip", "addr", "add", address, "dev", "lo"], check=True)
        server = _Server(("::", 80), _Credentials)
        stack.callback(server.server_close)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        stack.callback(server.shutdown)
        broker = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        yield broker.getsockname()[1]
