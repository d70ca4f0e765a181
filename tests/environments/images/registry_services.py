"""What large registries have beside them: a service that gives tokens for a login, and a storage to which
they send their clients."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import NameOID

ISSUER, SERVICE = "tokens of the tests", "registry of the tests"


class RegistryServices:
    """`certificate`: of whoever signs tokens, which the registry trusts. `storage_logins`: the header
    Authorization of each request to the storage."""

    def __init__(self, folder: Path, login: str) -> None:
        self.data = folder / "data"
        self.login = f"Basic {base64.b64encode(login.encode()).decode()}"
        self.storage_logins: list[str | None] = []
        self.scopes: list[str] = []
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._certificate = self._make_certificate()
        self.certificate = folder / "tokens.pem"
        self.certificate.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))
        handler = type("Handler", (_Handler,), {"services": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @contextmanager
    def serving(self) -> Iterator[RegistryServices]:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()

    def token(self, scope: str) -> str:
        kind, name, actions = scope.split(":")
        now = int(time.time())
        claims = {
            "iss": ISSUER,
            "aud": SERVICE,
            "sub": "team",
            "nbf": now - 60,
            "exp": now + 60,
            "jti": "1",
            "access": [{"type": kind, "name": name, "actions": actions.split(",")}],
        }
        chain = base64.b64encode(self._certificate.public_bytes(serialization.Encoding.DER)).decode()
        parts = [
            _encoded(json.dumps(part)) for part in ({"typ": "JWT", "alg": "RS256", "x5c": [chain]}, claims)
        ]
        text = ".".join(parts)
        signature = self._key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{text}.{_encoded(signature)}"

    def _make_certificate(self) -> x509.Certificate:
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, ISSUER)])
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder(name, name, self._key.public_key(), 1)
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .sign(self._key, hashes.SHA256())
        )


class _Handler(BaseHTTPRequestHandler):
    services: RegistryServices

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/token":
            self._give_token(parse_qs(parts.query))
            return
        self.services.storage_logins.append(self.headers.get("Authorization"))
        self._answer(200, (self.services.data / unquote(parts.path).lstrip("/")).read_bytes())

    def _give_token(self, query: dict[str, list[str]]) -> None:
        if self.headers.get("Authorization") != self.services.login:
            self._answer(401, b"{}")
            return
        self.services.scopes.append(query["scope"][0])
        self._answer(200, json.dumps({"token": self.services.token(query["scope"][0])}).encode())

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """The output of the tests is for failures."""


def _encoded(data: str | bytes) -> str:
    raw = data.encode() if isinstance(data, str) else data
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
