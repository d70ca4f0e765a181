"""The key with which this hub signs orders to run another version of the node program. Nodes remember the
first one that they get, so it is kept in DATA_DIR/keys, apart from that of certificates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from django.conf import settings

from trainhub_launch.errors import LaunchError
from trainhub_launch.upgrades.program_order import ProgramOrder
from workspaces.secrets.private_keys import make_private_key

FILE = "program-signing.pem"


class KeyUnusable(LaunchError):
    """The message names the file and the remedy."""


def signed(order: ProgramOrder) -> ProgramOrder:
    """Returns the order with key and signature. Raises KeyUnusable."""
    key = _key()
    return replace(
        order,
        key=key.public_key().public_bytes_raw().hex(),
        signature=key.sign(order.signed_bytes()).hex(),
    )


def _key() -> Ed25519PrivateKey:
    path = Path(settings.DATA_DIR) / "keys" / FILE
    try:
        if not path.exists():
            make_private_key(path)
        key = load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise KeyUnusable(f"{path} cannot be read ({error}); restore it from a backup.") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise KeyUnusable(f"{path} is no Ed25519 key; restore it from a backup.")
    return key
