"""The lines for a shell that install the command line on another machine and use it."""

from __future__ import annotations

import hashlib
import ipaddress
import shlex
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings

from trainhub_launch.addresses import is_loopback

CA_FILE = "trainhub-ca.pem"


@dataclass(frozen=True)
class InstallLine:
    """`purpose`: what the command does, for a person."""

    purpose: str
    command: str


def install_lines() -> tuple[InstallLine, ...]:
    """Returns the lines in their order. The first fetches the authority of a hub that has its own."""
    hub = settings.API_URL
    pip_options, login_options = "", ""
    authority = authority_pem()
    if authority:
        pip_options, login_options = f" --cert {CA_FILE}", f" --ca {CA_FILE}"
    elif has_plain_http():
        pip_options = f" --trusted-host {shlex.quote(urlsplit(hub).netloc)}"
    lines = [
        InstallLine("Install it", _install_line(pip_options)),
        InstallLine("Sign in", f"trainhub login {shlex.quote(hub)}{login_options}"),
        InstallLine("Submit a run from the folder of your script", "trainhub submit -- python train.py"),
    ]
    if authority:
        lines.insert(0, InstallLine("Fetch the certificate authority of this hub", _fetch_line(authority)))
    return tuple(lines)


def authority_pem() -> bytes:
    """Returns the certificate of the hub's own authority in PEM; empty if the hub has none."""
    return Path(settings.HUB_CA).read_bytes() if settings.HUB_CA else b""


def has_plain_http() -> bool:
    """Returns whether other machines reach the hub without TLS."""
    address = urlsplit(settings.API_URL)
    return address.scheme == "http" and not is_loopback(address.hostname or "")


def _install_line(options: str) -> str:
    address = urlsplit(settings.API_URL)
    rest = f"--no-index --find-links {shlex.quote(f'{settings.API_URL}/sdk/')}{options} trainhub"
    line = f"pip install {rest}"
    if address.scheme == "https" and _is_ip_address(address.hostname or ""):
        # From 24.2 to 26.0, pip fails at every certificate for an IP address. Its earlier way to verify works
        # there; versions that do not know this option refuse it, and do not need it.
        line = f"pip install --use-deprecated legacy-certs {rest} 2>/dev/null || {line}"
    return line


def _is_ip_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _fetch_line(authority: bytes) -> str:
    """Returns the command that fetches the authority and removes it again if its SHA-256 is another one, so
    that the lines after it fail, too, when all are pasted at once."""
    # curl cannot verify the connection yet; the hash in the line does that. It is the hash of the file, not
    # of the certificate in it: pip would trust a second certificate in the file, too.
    fetch = f"curl -fsSk -o {CA_FILE} {shlex.quote(f'{settings.API_URL}/sdk/ca.pem')}"
    check = f"openssl dgst -sha256 -r {CA_FILE} | grep {hashlib.sha256(authority).hexdigest()}"
    refuse = f"{{ rm -f {CA_FILE}; echo 'This is not the authority of the hub.' >&2; false; }}"
    return f"{fetch} && {check} || {refuse}"
