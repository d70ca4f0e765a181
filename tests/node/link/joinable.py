"""The doors through which a machine joins, over TLS or plain: for what a real hub does not do when asked."""

from __future__ import annotations

import hashlib
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from trainhub import certificates

SECRET = "thj_a-secret-of-the-tests"
NODE_TOKEN = "thn_a-node-of-the-tests"


class Joinable:
    """`spent`: join tokens that came. `refusal`: what enrolling answers instead (status, problem
    document)."""

    def __init__(self, tls: Path | None) -> None:
        self.tls = tls
        self.spent: list[dict[str, Any]] = []
        self.refusal: tuple[int, dict[str, Any]] | None = None
        self.welcome = True
        self.config: dict[str, Any] = {"broker_url": "", "queue": "node.gpu-a.wake", "transport_options": {}}
        self.clock_ahead_s = 0.0
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.hub = self
        if tls is not None:
            certificates.ensure(tls, ["127.0.0.1"])
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls / "server.pem", tls / "server-key.pem")
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def ca(self) -> str:
        return (self.tls / "ca.pem").read_text() if self.tls else ""

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(self.ca)).hexdigest()

    @property
    def token(self) -> str:
        return f"{SECRET}.{self.fingerprint}" if self.tls else SECRET

    @contextmanager
    def serving(self) -> Iterator[Joinable]:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    hub: Joinable

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that does not believe the certificate ends the connection, as it should."""


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None: ...

    @property
    def hub(self) -> Joinable:
        assert isinstance(self.server, _Server)
        return self.server.hub

    def date_time_string(self, timestamp: float | None = None) -> str:
        return super().date_time_string(time.time() + self.hub.clock_ahead_s)

    def do_GET(self) -> None:
        if self.path == "/healthz":
            self._answer(200, {})
        elif self.path == "/api/v1/node/ca/" and self.hub.tls:
            self._send(200, self.hub.ca.encode())
        elif self.path == "/api/v1/node/config/" and self.hub.welcome:
            who = {"node": "gpu-a", "cluster": "main", "hub_time": time.time() + self.hub.clock_ahead_s}
            self._answer(200, {**self.hub.config, **who})
        else:
            self._answer(401 if self.path == "/api/v1/node/config/" else 404, {})

    def do_POST(self) -> None:
        requests = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.hub.refusal:
            self._answer(*self.hub.refusal)
            return
        self.hub.spent.append(requests)
        name = requests["name"] or "gpu-a"
        self._answer(200, {"token": NODE_TOKEN, "name": name, "cluster": "main", "ca": self.hub.ca})

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        self._send(status, json.dumps(body).encode())

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
