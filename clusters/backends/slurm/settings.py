"""What an operator configures about a Slurm, and which values are accepted."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import re
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from trainhub_launch.addresses import is_loopback

MAX_TIME_S = 365 * 24 * 3600
MIN_TIME_S = 60
# Names of Slurm, accounts and hosts as they are in practice; none can be an option or end a line.
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}")
USER = re.compile(r"[a-z_][a-z0-9_.-]{0,31}")
HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
GRES = re.compile(r"[a-z][a-z0-9_]{0,31}(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,63})?")
FOLDER = re.compile(r"/[A-Za-z0-9_./+-]{0,254}")
_PATH = re.compile(r"(/[A-Za-z0-9_.~-]+)*")
MAX_URL = 300
# The kinds of host keys, the ones that we would rather have first.
KEY_KINDS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "ssh-rsa",
)
# Login nodes behind one name have a key each.
MAX_HOST_KEYS = 16
MAX_KEY = 4000
# Lower ones are root's.
MIN_RELAY_PORT = 1024


@dataclass(frozen=True)
class SettingsProblem:
    """`field` is the name of the setting, `message` a sentence for the operator."""

    field: str
    message: str


@dataclass(frozen=True)
class CommandHost:
    user: str
    name: str
    port: int = 22


@dataclass(frozen=True)
class SlurmSettings:
    """`command_host`: where Slurm's commands are, `user@host[:port]` over ssh, or empty for this machine.
    `host_key`: that host's key, one or several lines like `ssh-ed25519 AAAA…`. `login_group`: the group there
    whose members can have jobs; empty: only the account that logs in. `relay_port`: where the login node
    listens for the hub, so that nodes reach it there; 0: nowhere. `relay_host`: its name for the nodes;
    empty: the one in `command_host`.

    `rest_url`: of a slurmrestd, which is asked instead of any commands. `rest_ca`: certificates (PEM) of who
    signed its own; empty: those that the hub's machine trusts.

    `gres`: GPU model -> what Slurm calls it (`gpu:a100`); the model "" is any GPU. `shared_folder`: a folder
    that all nodes share, or empty. `node_cache`: one of each node, in which accounts keep what their later
    jobs need, or empty. Empty `account` and `qos` are the person's defaults in Slurm."""

    partition: str
    command_host: str = ""
    account: str = ""
    qos: str = ""
    default_time_s: int = 3600
    max_time_s: int = 7 * 24 * 3600
    gres: Mapping[str, str] = field(default_factory=lambda: {"": "gpu"})
    shared_folder: str = ""
    node_cache: str = ""
    host_key: str = ""
    login_group: str = ""
    relay_host: str = ""
    relay_port: int = 0
    rest_url: str = ""
    rest_ca: str = ""

    def gres_name(self, gpu_model: str = "") -> str:
        """Returns what Slurm calls this model, or any GPU if the model has no name of its own."""
        return self.gres.get(gpu_model) or self.gres.get("", "gpu")


def parse_command_host(text: str) -> CommandHost | None:
    """Returns None unless the text is `user@host` or `user@host:port`."""
    user, separator, rest = text.partition("@")
    name, colon, digits = rest.partition(":")
    if not separator or not USER.fullmatch(user) or not HOST.fullmatch(name):
        return None
    if not colon:
        return CommandHost(user, name)
    if not re.fullmatch(r"[0-9]{1,5}", digits) or not 0 < int(digits) < 2**16:
        return None
    return CommandHost(user, name, int(digits))


def normalize_host_key(text: str) -> str:
    """Returns the lines without names of hosts and without comments, as far as they are such lines."""
    lines = []
    for line in text.splitlines():
        words = line.split("#")[0].split()
        kinds = [place for place, word in enumerate(words) if word in KEY_KINDS]
        if words:
            lines.append(" ".join(words[kinds[0] : kinds[0] + 2] if kinds else words))
    return "\n".join(dict.fromkeys(lines))


def is_host_key(text: str) -> bool:
    lines = text.splitlines()
    return len(lines) <= MAX_HOST_KEYS and all(map(_is_key_line, lines))


def _is_key_line(line: str) -> bool:
    kind, _, encoded = line.partition(" ")
    try:
        data = base64.b64decode(encoded, validate=True)
    except ValueError:
        return False
    # A key begins with its kind, after the length of it.
    return kind in KEY_KINDS and len(encoded) <= MAX_KEY and data[4 : 4 + len(kind)] == kind.encode()


def fingerprint(line: str) -> str:
    """Returns `SHA256:…` of a line like `ssh-ed25519 AAAA…`, as `ssh-keygen -lf` prints it."""
    digest = hashlib.sha256(base64.b64decode(line.split()[1])).digest()
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


def validate(settings: SlurmSettings) -> list[SettingsProblem]:
    """Returns what is wrong, in the order of the fields; empty if all is right."""
    return [SettingsProblem(name, message) for name, message in _problems(settings)]


def _problems(settings: SlurmSettings) -> Iterator[tuple[str, str]]:
    if settings.command_host:
        host = parse_command_host(settings.command_host)
        if host is None:
            yield "command_host", "Enter user@host or user@host:port, or nothing for this machine."
        elif host.user == "root":
            yield "command_host", "Log in as a plain account, never as root."
    if settings.host_key and not is_host_key(settings.host_key):
        yield (
            "host_key",
            f"Enter lines like ssh-ed25519 AAAA…, as ssh-keyscan prints them, {MAX_HOST_KEYS} at most.",
        )
    if settings.login_group and not USER.fullmatch(settings.login_group):
        yield "login_group", "Enter the name of a Unix group on the login node, or nothing."
    yield from _rest_problems(settings)
    if settings.relay_host and not HOST.fullmatch(settings.relay_host):
        yield "relay_host", "Enter a host name or an IPv4 address of the login node, or nothing."
    if settings.relay_port:
        if not settings.command_host:
            yield "relay_port", "A relay needs a login node: enter one, or 0 here."
        elif not MIN_RELAY_PORT <= settings.relay_port < 2**16:
            yield "relay_port", f"Choose a port from {MIN_RELAY_PORT} to 65535, or 0 for no relay."
    if not NAME.fullmatch(settings.partition):
        yield "partition", "Enter the name of a partition: letters, digits and _ . + - (see: sinfo)."
    for name in ("account", "qos"):
        value = getattr(settings, name)
        if value and not NAME.fullmatch(value):
            yield name, "Only letters, digits and _ . + - can be in it; leave it empty for the default."
    if not MIN_TIME_S <= settings.max_time_s <= MAX_TIME_S:
        yield "max_time_s", "Choose a greatest time between one minute and 365 days."
    if not MIN_TIME_S <= settings.default_time_s <= settings.max_time_s:
        yield "default_time_s", "Choose a default time between one minute and the greatest time."
    for model, gres in settings.gres.items():
        if not GRES.fullmatch(gres):
            yield (
                "gres",
                f"{gres!r} for {model or 'any GPU'} must be like gpu or gpu:a100 (see: sinfo -o %G).",
            )
    for name in ("shared_folder", "node_cache"):
        folder = getattr(settings, name)
        if folder and not _is_folder(folder):
            yield name, "Enter an absolute path without spaces and without '..', or nothing."


def _rest_problems(settings: SlurmSettings) -> Iterator[tuple[str, str]]:
    if settings.rest_url and settings.command_host:
        yield "rest_url", "Choose one: a login node, or the address of a slurmrestd."
    elif settings.rest_url and not _is_rest_url(settings.rest_url):
        yield (
            "rest_url",
            "Enter an address like https://slurm.example:6820. Without encryption, with http://, only an "
            "address of the hub's own machine is accepted, because tokens are sent there.",
        )
    if settings.rest_ca:
        try:
            ssl.create_default_context(cadata=settings.rest_ca)
        except (ssl.SSLError, ValueError):
            yield "rest_ca", "Enter certificates as PEM: from -----BEGIN CERTIFICATE----- to the end."


def _is_rest_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        has_port = parts.port != 0
    except ValueError:
        return False
    host = parts.hostname or ""
    is_plain = has_port and not any((parts.query, parts.fragment, parts.username, parts.password))
    is_name = bool(HOST.fullmatch(host) or _is_address(host))
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
    return is_plain and is_name and is_safe and bool(_PATH.fullmatch(parts.path)) and len(text) <= MAX_URL


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_folder(text: str) -> bool:
    return bool(FOLDER.fullmatch(text)) and ".." not in PurePosixPath(text).parts
