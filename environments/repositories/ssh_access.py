"""How git reaches a repository over SSH: with one deploy key, and only a server whose host key an operator
has listed."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import SplitResult

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_private_key
from django.conf import settings

from environments.indexes.index_address import IndexCredentials

PORT = 22
CONNECT_S = 10
# `-F /dev/null`: no settings of the machine or of the hub's account count. Nothing is ever asked or
# forwarded.
OPTIONS = {
    "BatchMode": "yes",
    "PreferredAuthentications": "publickey",
    "IdentitiesOnly": "yes",
    "IdentityAgent": "none",
    "ClearAllForwardings": "yes",
    "StrictHostKeyChecking": "yes",
    "UpdateHostKeys": "no",
    "GlobalKnownHostsFile": "/dev/null",
    "ConnectTimeout": str(CONNECT_S),
    "ServerAliveInterval": "10",
    "ServerAliveCountMax": "2",
    "LogLevel": "ERROR",
}


class KeyRefused(Exception):
    """The deploy key is none that can be used; the message is what the secret's value is, as in 'is
    empty'."""


class SshMissing(Exception):
    """The hub's machine has no ssh."""


def host_name(parts: SplitResult) -> str:
    """Returns the server's name as files of known hosts have it: `host`, or `[host]:port`."""
    host, port = parts.hostname or "", parts.port or PORT
    return host if port == PORT else f"[{host}]:{port}"


def variables(
    folder: Path, parts: SplitResult, addresses: Sequence[str], login: IndexCredentials, path: str
) -> Mapping[str, str]:
    """Writes the key into `folder`, which only this account may enter, and returns the variables by which git
    uses it. `addresses`: of the server, all permitted; `login`: the user, and the key as its password;
    `path`: where programs are. Raises KeyRefused and SshMissing."""
    program = shutil.which("ssh", path=path)
    if program is None:
        raise SshMissing
    text = "".join(f"{line.rstrip()}\n" for line in login.password.strip().splitlines())
    _check_key(text.encode())
    key = folder / "key"
    key.touch(mode=0o600)
    key.write_text(text)
    # By its address, which has been checked: the name may mean another one the next time. A machine without a
    # route by IPv6 often knows such addresses, too.
    address = min(addresses, key=lambda item: ":" in item)
    own = {
        "User": login.username,
        "Port": str(parts.port or PORT),
        "HostName": address,
        "HostKeyAlias": host_name(parts),
        "UserKnownHostsFile": str(settings.GIT_KNOWN_HOSTS),
    }
    options = [f"-o{name}={value}" for name, value in (OPTIONS | own).items()]
    return {
        "GIT_SSH_COMMAND": shlex.join([program, "-F", "/dev/null", "-i", str(key), *options]),
        "GIT_SSH_VARIANT": "ssh",
    }


def _check_key(data: bytes) -> None:
    problem = "is no private key; store all of the file, from its line BEGIN to its line END"
    for load in (load_ssh_private_key, load_pem_private_key):
        try:
            load(data, None)
        except TypeError as error:
            # Both say so for a key with a passphrase.
            raise KeyRefused("is a key with a passphrase; store one without, for this alone") from error
        except UnsupportedAlgorithm as error:
            problem = f"is a key that cannot be used: {error}"
        except ValueError:
            continue
        else:
            return
    raise KeyRefused(problem)
