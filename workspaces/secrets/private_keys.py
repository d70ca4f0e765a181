"""Files with Ed25519 keys of this installation, which only its account can read."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat


def make_private_key(path: Path) -> None:
    """Makes the key file. Several processes may do this at once: the first file wins, and all of them use
    it."""
    private = new_private_key(path.parent)
    try:
        # A link fails where the name is taken, whereas a rename would replace the key of another process.
        os.link(private, path)
    except FileExistsError:
        pass
    finally:
        private.unlink()


def new_private_key(folder: Path) -> Path:
    """Makes a key in the folder, and returns its file, whose name nobody knows yet."""
    private = Ed25519PrivateKey.generate()
    return write_private_file(
        folder / f".{secrets.token_hex(8)}",
        private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )


def write_private_file(path: Path, data: bytes) -> Path:
    """Makes the file, which must not exist, in a private folder, and returns it. Raises OSError."""
    # With `parents=True` missing parents get the default mode; each folder is made here with its own.
    for folder in (path.parent.parent, path.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # The mode is set as the file is made, so that there is no moment at which others can read it.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        # The bytes are on the disk before the file gets its final name; a power failure leaves no half key
        # there.
        os.fsync(file.fileno())
    return path
