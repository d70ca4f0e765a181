"""Which keys a login node shows now. Whoever answers may be somebody else: a person must compare them."""

from __future__ import annotations

import subprocess

from clusters.backends.slurm.settings import (
    KEY_KINDS,
    CommandHost,
    fingerprint,
    is_host_key,
    normalize_host_key,
)

SCAN_S = 5
_SCAN_KINDS = "ed25519,ecdsa,rsa"


def shown_host_key(host: CommandHost) -> str:
    """Returns the line of the best key that the host shows, "" if it does not answer."""
    scan = ["ssh-keyscan", "-T", str(SCAN_S), "-t", _SCAN_KINDS, "-p", str(host.port), "--", host.name]
    try:
        done = subprocess.run(
            scan, capture_output=True, stdin=subprocess.DEVNULL, timeout=3 * SCAN_S, check=False, cwd="/"
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = [
        line
        for line in normalize_host_key(done.stdout.decode(errors="replace")).splitlines()
        if is_host_key(line)
    ]
    return min(lines, key=lambda line: KEY_KINDS.index(line.split()[0]), default="")


def host_key_request(host: CommandHost) -> str:
    """Returns the sentence that asks for the host's key, and says which it shows now."""
    where = f"{host.name}:{host.port}"
    line = shown_host_key(host)
    if not line:
        return (
            f"Enter the host key of {where}: the content of /etc/ssh/ssh_host_ed25519_key.pub there. The hub "
            "could not ask for it now; check the name, the port and the network between."
        )
    return (
        f"{where} shows the key {fingerprint(line)} now. Compare it with the one that its administrator "
        f"knows (there: ssh-keygen -lf /etc/ssh/ssh_host_{_file_kind(line)}_key.pub). If they are equal, "
        f"enter this line: {line}"
    )


def _file_kind(line: str) -> str:
    """Returns the part of the file's name that tells the kind: ed25519, ecdsa or rsa."""
    return line.split(maxsplit=1)[0].removeprefix("ssh-").split("-")[0]
