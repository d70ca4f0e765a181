"""The node's settings, read once from environment variables; a wrong value is refused with its name."""

from __future__ import annotations

import ipaddress
import os
import socket
import ssl
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from trainhub_node import run_account
from trainhub_node.containers import engine
from trainhub_node.data.peers.port_setting import peer_port
from trainhub_node.data.shares.allowed_servers import nfs_servers
from trainhub_node.gpu.gpu_setting import chosen_gpus
from trainhub_node.isolation.cgroup_place import CgroupPlace
from trainhub_node.isolation.network_rules import NetworkTable
from trainhub_node.machine import addresses
from trainhub_node.run_account import Account
from trainhub_node.upgrade.installation import SELF, upgrade_way

DEFAULT_CACHE_BYTES = 50 * 1024**3


class SettingsError(Exception):
    """A variable is missing or wrong; the message is a sentence that names it."""


@dataclass(frozen=True)
class NodeSettings:
    """`run_as`: the account of the ranks; None is the agent's own. With `uids` each attempt has an account of
    its own from that range, and `run_as` stands for all of them: it has the first number, which no attempt
    gets. With `is_per_person` each attempt has the account of its person, and `run_as` stands for all of
    them: it is `nobody`. `people`: the operator's file that names these accounts;
    `refused_accounts`: those that no run gets. `hidden`: folders and files of which runs see nothing.
    `shared`: folders outside of their own into which runs may write although all else is read-only.
    `allows_namespaces`: runs may have namespaces of their own. `allows_metadata`: runs may reach the
    addresses at which a cloud tells this machine its credentials. `engine`: the container engine, "" = podman
    or else docker, "off" = none. `image_days`: after which unused images are removed.
    `data_cache_bytes`: the size of the cache of data, 0 = a share of its disk. `peer_port`, `nfs_servers`:
    see there. `gpus`: the indexes or UUIDs of the GPUs that it may use, None = all.
    `has_outer_limits`: whoever has started the agent holds it, with its runs, to their memory and CPU cores.
    `upgrades`: see upgrade_way.

    The rest is found by a trial: `has_namespaces`: whether runs can have namespaces of their own here, and
    `separation_trouble` why not; `cgroup`: where the control groups of runs are; `network`: the table that
    refuses connections to runs, and `network_trouble` why there is none."""

    hub_url: str
    token: str
    name: str
    folder: Path
    cache: Path
    slots: int
    cores: int
    cache_bytes: int
    python: str
    address: str = ""
    interface: str = ""
    run_as: Account | None = None
    hub_ca: Path | None = None
    uids: range | None = None
    hidden: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    is_per_person: bool = False
    people: Path | None = None
    refused_accounts: tuple[str, ...] = ()
    allows_namespaces: bool = True
    allows_metadata: bool = False
    engine: str = ""
    image_days: int = 30
    data_cache_bytes: int = 0
    peer_port: int | None = 0
    nfs_servers: tuple[str, ...] = ()
    gpus: frozenset[str] | None = None
    has_outer_limits: bool = False
    upgrades: str = SELF
    has_namespaces: bool = False
    separation_trouble: str = ""
    cgroup: CgroupPlace | None = None
    network: NetworkTable | None = None
    network_trouble: str = ""

    @property
    def attempts(self) -> Path:
        return self.folder / "attempts"

    @property
    def snapshots(self) -> Path:
        return self.cache / "snapshots"

    @property
    def environments(self) -> Path:
        return self.cache / "environments"

    @property
    def packages(self) -> Path:
        """The cache of wheels."""
        return self.cache / "packages"

    @property
    def image_builds(self) -> Path:
        """The folder in which images are built, each in its own."""
        return self.folder / "image-builds"

    @property
    def sites(self) -> Path:
        return self.folder / "sites"

    @property
    def rank_ca(self) -> Path:
        """The copy of the hub's CA that ranks can read."""
        return self.sites / "hub-ca.pem"


def read(env: Mapping[str, str] = os.environ) -> NodeSettings:
    """Returns the settings that the variables `env` contain. Raises SettingsError."""
    cores = len(os.sched_getaffinity(0))
    try:
        uids = run_account.numbers(env)
        account = run_account.choose_account(env, uids)
        people = run_account.people_file(env, _folder(env))
        port = peer_port(env)
        servers = nfs_servers(env)
        upgrades = upgrade_way(env)
    except ValueError as error:
        raise SettingsError(str(error)) from error
    return NodeSettings(
        hub_url=_url(env),
        token=_token(env),
        name=env.get("TRAINHUB_NODE_NAME", "") or socket.gethostname(),
        folder=_folder(env),
        cache=_cache(env),
        cores=cores,
        slots=_positive(env, "TRAINHUB_NODE_SLOTS", max(8, 4 * cores)),
        cache_bytes=_positive(env, "TRAINHUB_NODE_CACHE_BYTES", DEFAULT_CACHE_BYTES),
        python=_python(env, account),
        address=_address(env),
        interface=_interface(env),
        run_as=account,
        hub_ca=_hub_ca(env),
        uids=uids,
        hidden=_folders(env, "TRAINHUB_NODE_HIDE"),
        shared=_folders(env, "TRAINHUB_NODE_SHARED"),
        is_per_person=account is not None and account.name == run_account.PERSON,
        people=people,
        refused_accounts=_words(env, "TRAINHUB_NODE_REFUSED_ACCOUNTS"),
        allows_namespaces=_choice(env, "TRAINHUB_NODE_NAMESPACES", "on", "off") == "on",
        allows_metadata=_choice(env, "TRAINHUB_NODE_METADATA", "refuse", "allow") == "allow",
        engine=_engine(env),
        image_days=_positive(env, "TRAINHUB_NODE_IMAGE_DAYS", NodeSettings.image_days),
        data_cache_bytes=_positive(env, "TRAINHUB_NODE_DATA_CACHE_BYTES", NodeSettings.data_cache_bytes),
        peer_port=port,
        nfs_servers=servers,
        gpus=chosen_gpus(env),
        has_outer_limits=_choice(env, "TRAINHUB_NODE_LIMITS", "own", "outer") == "outer",
        upgrades=upgrades,
    )


def _url(env: Mapping[str, str]) -> str:
    value = env.get("TRAINHUB_HUB_URL", "").rstrip("/")
    if not value:
        raise SettingsError("TRAINHUB_HUB_URL is not set; give the hub's address, like http://10.0.0.1:8000")
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingsError(
            f"TRAINHUB_HUB_URL={value} must be like https://hub.example.org or http://10.0.0.1:8000"
        )
    return value


def _token(env: Mapping[str, str]) -> str:
    value, file = env.get("TRAINHUB_NODE_TOKEN", ""), env.get("TRAINHUB_NODE_TOKEN_FILE", "")
    if not value and file:
        try:
            value = Path(file).read_text().strip()
        except OSError as error:
            raise SettingsError(
                f"TRAINHUB_NODE_TOKEN_FILE={file} cannot be read: {error.strerror}"
            ) from error
    if not value:
        raise SettingsError(
            "TRAINHUB_NODE_TOKEN (or _FILE) is not set; `trainhub-node join` gets one from the hub"
        )
    return value


def _folder(env: Mapping[str, str]) -> Path:
    value = env.get("TRAINHUB_NODE_DIR", "")
    if not value:
        raise SettingsError(
            "TRAINHUB_NODE_DIR is not set; give a folder for attempts and caches, like /var/lib/trainhub-node"
        )
    return Path(value).absolute()


def _cache(env: Mapping[str, str]) -> Path:
    value = env.get("TRAINHUB_NODE_CACHE", "")
    return Path(value).absolute() if value else _folder(env) / "cache"


def _hub_ca(env: Mapping[str, str]) -> Path | None:
    value = env.get("TRAINHUB_HUB_CA", "")
    if not value:
        return None
    try:
        ssl.create_default_context(cafile=value)
    except ssl.SSLError as error:
        raise SettingsError(f"TRAINHUB_HUB_CA={value} is not a certificate in PEM form") from error
    except OSError as error:
        raise SettingsError(f"TRAINHUB_HUB_CA={value} cannot be read: {error.strerror}") from error
    return Path(value).absolute()


def _address(env: Mapping[str, str]) -> str:
    value = env.get("TRAINHUB_NODE_ADDRESS", "")
    try:
        return str(ipaddress.ip_address(value)) if value else ""
    except ValueError as error:
        raise SettingsError(f"TRAINHUB_NODE_ADDRESS={value} must be an IP address, like 10.0.0.7") from error


def _interface(env: Mapping[str, str]) -> str:
    value = env.get("TRAINHUB_NODE_INTERFACE", "")
    interfaces = addresses.by_interface()
    if value and value not in interfaces:
        raise SettingsError(
            f"TRAINHUB_NODE_INTERFACE={value} is not an interface here; there are: {', '.join(interfaces)}"
        )
    if value and not interfaces[value] and not env.get("TRAINHUB_NODE_ADDRESS"):
        raise SettingsError(
            f"TRAINHUB_NODE_INTERFACE={value} has no address now; bring it up, or choose another one"
        )
    return value


def _positive(env: Mapping[str, str], name: str, default: int) -> int:
    value = env.get(name, "")
    if not value:
        return default
    if not value.isdigit() or int(value) < 1:
        raise SettingsError(f"{name}={value} must be a whole number above 0")
    return int(value)


def _python(env: Mapping[str, str], account: Account | None) -> str:
    value = env.get("TRAINHUB_NODE_PYTHON", "")
    if value:
        if not run_account.can_execute(value, account):
            raise SettingsError(
                f"TRAINHUB_NODE_PYTHON={value} is not a file that {_account_text(account)} may execute"
            )
        return str(Path(value).absolute())
    # The interpreter below the agent's own virtual environment: training must not find the agent's packages.
    for candidate in (
        getattr(sys, "_base_executable", "") or sys.executable,
        "/usr/bin/python3",
        "/usr/local/bin/python3",
    ):
        if run_account.can_execute(candidate, account):
            return candidate
    raise SettingsError(
        f"TRAINHUB_NODE_PYTHON is not set, and there is no Python that {_account_text(account)} may execute"
    )


def _account_text(account: Account | None) -> str:
    return "the agent" if account is None else f"the account {account.name}"


def _choice(env: Mapping[str, str], name: str, default: str, other: str) -> str:
    value = env.get(name, "") or default
    if value not in (default, other):
        raise SettingsError(f"{name}={value} must be {default} or {other}")
    return value


def _words(env: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(word for word in env.get(name, "").split(":") if word)


def _engine(env: Mapping[str, str]) -> str:
    value = env.get("TRAINHUB_NODE_CONTAINERS", "")
    if value not in ("", *engine.NAMES, engine.OFF):
        raise SettingsError(f"TRAINHUB_NODE_CONTAINERS={value} must be podman, docker or off")
    return value


def _folders(env: Mapping[str, str], name: str) -> tuple[str, ...]:
    folders = _words(env, name)
    for folder in folders:
        if not folder.startswith("/") or folder == "/":
            raise SettingsError(f"{name}={env[name]} must be folders with whole paths, separated by colons")
    return folders
