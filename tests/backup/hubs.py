"""Hubs that have their keys for themselves, as on machines of their own."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tests import migrated
from tests.hub import Hub

RUN = "a" * 32
LOG = f"runs/{RUN}/1/logs/70_driver_log.txt"
KEYS = {
    "secret-key": "of-tests-only",
    "keys/model-signing.pem": "a private key",
    "tls/ca-key.pem": "another private key",
    "tls/ca.pem": "its certificate",
}


def hub_at(folder: Path, **settings: str) -> Hub:
    folder.mkdir(parents=True, exist_ok=True)
    return Hub(folder / "data", SECRETS_KEYRING=str(folder / "data.keyring" / "keys"), **settings)


def other_hub(folder: Path, **settings: str) -> Hub:
    """A hub on another, empty data folder."""
    hub = hub_at(folder / "elsewhere", **settings)
    hub.is_new = True  # its database is the restored one
    return hub


def stopped_hub(folder: Path) -> Hub:
    """What a hub leaves that was stopped: a database, a log, blobs and keys, of the fewest bytes."""
    hub = hub_at(folder / "here")
    migrated.put_into(hub.data_dir)
    write(hub.data_dir / LOG, b"line\n" * 2000)
    write(hub.data_dir / f"runs/{RUN}/1/sizes.json", b'{"": 1}')
    write(hub.data_dir / "audit-heads.log", b"")
    write(hub.data_dir / "keys/public/ab.pem", b"a public key")
    for name, text in KEYS.items():
        write(hub.data_dir / name, text.encode())
    write(Path(hub.settings["SECRETS_KEYRING"]), b"00000000 the key\n")
    for number in range(3):
        add_blob(hub, f"blob {number}".encode() * 1000)
    return hub


def add_blob(hub: Hub, content: bytes) -> Path:
    sha256 = hashlib.sha256(content).hexdigest()
    path = hub.data_dir / "blobs" / sha256[:2] / sha256
    write(path, content)
    path.chmod(0o400)
    return path


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def refusal(hub: Hub, *arguments: str) -> str:
    """The sentence with which a command fails."""
    done = hub.manage(*arguments, check=False)
    assert done.returncode == 1, done.stdout
    assert done.stderr.startswith("CommandError: "), done.stderr
    return done.stderr
