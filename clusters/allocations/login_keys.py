"""The keys with which the hub logs in on the login nodes of Slurms, one for each cluster.

The private key is a secret of the hub. ssh needs it in a file; that lies beside the keys of the secrets, in a
folder that only the hub may enter, and not in the data folder, which is copied for backups."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from django.conf import settings

from clusters.backends.slurm.errors import SlurmError, SlurmFault
from clusters.backends.slurm.settings import CommandHost
from clusters.backends.slurm.ssh_commands import KEY, KNOWN_HOSTS, known_hosts_text
from clusters.models import SlurmPartition
from trainhub_launch.errors import LaunchError
from workspaces.secrets import hub_secrets, store
from workspaces.secrets.errors import SecretsUnavailable

FOLDER = "login-nodes"
DIGITS = 16


class KeyUnavailable(LaunchError):
    """No key can be made or read; the message is a sentence with the remedy."""


def make_key(cluster_id: int) -> str:
    """Makes a pair of keys in place of an earlier one, and returns the public one as `ssh-ed25519 AAAA…`,
    which the caller stores. Raises KeyUnavailable."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
    try:
        store.make_keyring()
        hub_secrets.put(_secret_name(cluster_id), private)
    except SecretsUnavailable as error:
        raise KeyUnavailable(f"The hub cannot keep a key for the login node: {error.message}.") from error
    remove_files(cluster_id)
    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def forget_key(cluster_id: int) -> None:
    hub_secrets.delete(_secret_name(cluster_id))
    remove_files(cluster_id)


def login_folder(row: SlurmPartition, host: CommandHost) -> Path:
    """Returns the folder with the files for ssh, which are written if they are not there. Raises SlurmError.

    Each key and each host's key has a folder of its own, and so has its shared connection: none outlives a
    change of either."""
    known_hosts = known_hosts_text(host, row.host_key)
    content = f"{host.user}\n{known_hosts}{row.public_key}"
    folder = _folder(row.cluster_id) / hashlib.sha256(content.encode()).hexdigest()[:DIGITS]
    if not (folder / KEY).exists():
        try:
            _write(folder, hub_secrets.value_of(_secret_name(row.cluster_id)), known_hosts)
        except SecretsUnavailable as error:
            sentence = f"The hub's key for the login node cannot be read: {error.message}."
            raise SlurmError(SlurmFault.SSH_KEY, sentence) from error
        except OSError as error:
            sentence = (
                f"The hub's key for the login node cannot be written to {folder}: {error.strerror}. The "
                "folder of SECRETS_KEYRING must belong to the hub's account."
            )
            raise SlurmError(SlurmFault.SSH_KEY, sentence) from error
    return folder


def remove_files(cluster_id: int) -> None:
    shutil.rmtree(_folder(cluster_id), ignore_errors=True)


def _write(folder: Path, private_key: str, known_hosts: str) -> None:
    for path in (folder.parent.parent, folder.parent, folder):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    # The key comes last: who finds it finds all.
    for name, text in ((KNOWN_HOSTS, known_hosts), (KEY, private_key)):
        # As a whole, because other processes may do the same, and ssh may read it meanwhile.
        descriptor, aside = tempfile.mkstemp(dir=folder)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        Path(aside).replace(folder / name)


def _folder(cluster_id: int) -> Path:
    return Path(settings.SECRETS_KEYRING).parent / FOLDER / str(cluster_id)


def _secret_name(cluster_id: int) -> str:
    return f"login-key-{cluster_id}"
