"""Paths and addresses of this installation. Imports no Django, because the supervisor reads them as well as
the settings."""

from __future__ import annotations

import json
import os
import secrets
import socket
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from trainhub import addresses, env, files

BASE_DIR = files.BASE_DIR
DATA_DIR = env.folder("DATA_DIR", files.default_data_folder())
NODE_DIR = env.folder("NODE_DIR", DATA_DIR / "node")
# Values of RUN_AS that name no account of runs: one for each attempt, that of the person who submitted it,
# and root's consent to run all as root.
RANGE, PERSON, ROOT = "range", "person", "root"
RUN_AS = env.text("RUN_AS", "") or (RANGE if os.geteuid() == 0 else "")
RUN_AS = "" if RUN_AS == ROOT and os.geteuid() == 0 else RUN_AS
HUB_AS = env.text("HUB_AS", "")
LOG_LEVEL = env.choice("LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR"))
# Which of several servers this is, and where its process ids, locks and logs are.
SERVER_NAME = env.server_name("SERVER_NAME")
OWN_DIR = DATA_DIR / "servers" / SERVER_NAME if SERVER_NAME else DATA_DIR
SERVICES_FILE = OWN_DIR / "run" / "services.json"
SECRET_KEY_FILE, NODE_TOKEN_FILE = DATA_DIR / "secret-key", DATA_DIR / "node-token"
LOGS, TLS_DIR = OWN_DIR / "logs", DATA_DIR / "tls"
RESTORE_MARK, MOVE_MARK = DATA_DIR / "restore-unfinished", DATA_DIR / "moved-to-postgresql"
# Of what the hub packs itself: for nodes, for the command line, and for jobs of a Slurm.
PACKAGE_FOLDERS = (DATA_DIR / "wheels", DATA_DIR / "sdk-wheels", DATA_DIR / "node-programs")
# Browsers know each name below localhost as their own machine, so this one keeps the cookies of a hub that
# only this machine reaches apart from those of the programs at its other ports, which people visit as
# 127.0.0.1 or localhost.
BROWSER_HOST = "trainhub.localhost"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
ANY_ADDRESS = ("", "0.0.0.0", "::")  # noqa: S104 - compared with, never bound by itself
REDIS_KINDS = ("redis", "rediss", "unix")
BROKER_KINDS = ("redis", "rediss", "redis+socket", "amqp", "amqps")


class Bind(NamedTuple):
    host: str
    port: int

    @property
    def local_url(self) -> str:
        """The URL at which this machine itself reaches the hub."""
        return f"{_scheme()}://{self.local_host}:{self.port}"

    @property
    def local_host(self) -> str:
        return addresses.bracketed("127.0.0.1" if self.host in ANY_ADDRESS else self.host)


class Certificate(NamedTuple):
    """The files of a certificate. `ca` is that of the hub's own authority, None for a public one."""

    chain: Path
    key: Path
    ca: Path | None


OWN_CERTIFICATE = Certificate(TLS_DIR / "server.pem", TLS_DIR / "server-key.pem", TLS_DIR / "ca.pem")


def is_open() -> bool:
    """Returns whether other machines may reach the hub (OPEN=1)."""
    return env.boolean("OPEN", False)


def bind() -> Bind:
    return parse_bind("BIND", env.text("BIND", "0.0.0.0:8000" if is_open() else "127.0.0.1:8000"))


def broker_bind() -> Bind | None:
    """Returns where the gateway of the embedded Valkey listens for other machines; None while the hub is not
    open."""
    if not is_open():
        return None
    host, port = bind()
    return parse_bind("BROKER_BIND", env.text("BROKER_BIND", "") or f"{addresses.bracketed(host)}:{port + 1}")


def is_on_loopback_only() -> bool:
    """Returns whether only programs on this machine can reach the hub."""
    host = bind().host
    # All of 127.0.0.0/8 is the loopback.
    return not is_open() and (host in ("localhost", "::1") or host.startswith("127."))


def certificate() -> Certificate | None:
    """Returns the web server's certificate; None if it speaks plain HTTP (on this machine only, or behind a
    proxy). Raises EnvError for settings that contradict each other."""
    chain, key = env.text("TLS_CERT_FILE", ""), env.text("TLS_KEY_FILE", "")
    if bool(chain) != bool(key):
        raise env.EnvError("TLS_CERT_FILE and TLS_KEY_FILE belong together; set both, or none")
    if not is_open():
        if chain:
            raise env.EnvError(
                "TLS_CERT_FILE is used where the hub is open to other machines; set OPEN=1 too"
            )
        return None
    if env.boolean("TLS", True):
        return Certificate(Path(chain).absolute(), Path(key).absolute(), None) if chain else OWN_CERTIFICATE
    if not env.text("PUBLIC_URL", "").startswith("https://"):
        raise env.EnvError(
            "TLS=0 leaves TLS to a proxy of yours; set PUBLIC_URL to the https:// address of that proxy"
        )
    return None


def broker_certificate() -> Certificate | None:
    """Returns the certificate of the embedded broker for other machines; None while the hub is not open.

    With TLS=0 the broker speaks TLS, too, because no proxy stands before it."""
    return certificate() or (OWN_CERTIFICATE if is_open() else None)


def outer_address() -> str:
    """Returns the address at which other machines reach this one, or ""."""
    host = bind().host
    return addresses.in_use() if host in ANY_ADDRESS else host


def certificate_hosts() -> list[str]:
    """Returns every name and address of the hub, for its certificate."""
    named = [name for name in env.split_words("ALLOWED_HOSTS") if not name.startswith((".", "*"))]
    hosts = {*named, *own_hosts(), "::1", socket.gethostname(), *addresses.local()}
    return sorted({host.strip("[]") for host in hosts})


def allowed_hosts() -> list[str]:
    """Returns the hosts that a request may name: those that the operator lists, the hub's own, and those in
    its certificate."""
    certified = certificate_hosts() if certificate() is not None else []
    return sorted(
        {*env.split_words("ALLOWED_HOSTS"), *own_hosts(), *(addresses.bracketed(host) for host in certified)}
    )


def agent_url() -> str:
    """Returns the URL at which this machine's own agent reaches the hub, with a host that the certificate
    contains."""
    files = certificate()
    # A certificate of the operator's own names the hub's public name, not the loopback.
    return api_url() if files is not None and files.ca is None else bind().local_url


def public_url() -> str:
    """Returns the URL at which browsers reach the hub: PUBLIC_URL, otherwise the address at which it
    listens."""
    url = env.web_url("PUBLIC_URL", env.text("PUBLIC_URL", ""))
    if not url and bind().host in LOOPBACK and not is_open():
        return f"{_scheme()}://{BROWSER_HOST}:{bind().port}"
    return url or _listening_url()


def api_url() -> str:
    """Returns the URL at which programs reach the hub: API_URL, PUBLIC_URL if programs can resolve its host,
    or the address at which it listens."""
    url = env.web_url("API_URL", env.text("API_URL", ""))
    if is_for_browsers_only(url):
        raise env.EnvError(
            f"API_URL={url} names a host that programs often do not find; use {bind().local_url}"
        )
    public = env.web_url("PUBLIC_URL", env.text("PUBLIC_URL", ""))
    return url or (public if public and not is_for_browsers_only(public) else _listening_url())


def is_for_browsers_only(url: str) -> bool:
    """Returns whether the host of `url` is below localhost, which many programs cannot resolve."""
    return (urlsplit(url).hostname or "").endswith(".localhost")


def stored_public_url() -> str:
    """Returns `public_url`; without PUBLIC_URL and BIND, that of the TrainHub that is running."""
    if env.text("PUBLIC_URL", "") or env.text("BIND", ""):
        return public_url()
    return services().get("public_url") or public_url()


def stored_api_url() -> str:
    """Returns `api_url`; without an address in the environment, that of the TrainHub that is running."""
    if any(env.text(name, "") for name in ("API_URL", "PUBLIC_URL", "BIND")):
        return api_url()
    return services().get("api_url") or api_url()


def own_hosts() -> list[str]:
    """Returns the host names and addresses at which this hub can be reached without further settings."""
    hosts = {
        "localhost",
        "127.0.0.1",
        "[::1]",
        *(urlsplit(url).hostname or "" for url in (public_url(), api_url())),
    }
    host = bind().host
    hosts |= {socket.gethostname(), addresses.in_use()} if host in ANY_ADDRESS else {host}
    if is_open() and host in ANY_ADDRESS:
        hosts |= set(addresses.local())
    return sorted(addresses.bracketed(item) for item in hosts if item)


def services() -> dict[str, str]:
    """Returns the addresses that the running `manage.py up` has published; empty if none is running."""
    try:
        text = SERVICES_FILE.read_text()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise env.EnvError(
            f"{SERVICES_FILE} cannot be read: {error.strerror}. Run as the account that runs TrainHub."
        ) from error
    try:
        return dict(json.loads(text))
    except ValueError as error:
        raise env.EnvError(f"{SERVICES_FILE} is damaged; stop TrainHub and start it again") from error


def redis_url() -> str:
    return configured_redis_url() or services().get("redis_url") or "redis://127.0.0.1:6379/0"


def configured_redis_url() -> str:
    return env.url_of_kind("REDIS_URL", env.secret("REDIS_URL"), REDIS_KINDS)


def broker_url() -> str:
    return configured_broker_url() or broker_of(redis_url())


def configured_broker_url() -> str:
    return env.url_of_kind("BROKER_URL", env.secret("BROKER_URL"), BROKER_KINDS)


def node_broker_url() -> str:
    """Returns the URL at which other machines reach the broker, if that is not BROKER_URL; without user and
    password."""
    return env.url_of_kind(
        "NODE_BROKER_URL", env.text("NODE_BROKER_URL", ""), BROKER_KINDS
    ) or services().get("node_broker_url", "")


def broker_ca() -> Path | None:
    """Returns the authority behind the embedded broker's certificate, as a file; None if there is none."""
    path = "" if env.text("NODE_BROKER_URL", "") else services().get("broker_ca", "")
    return Path(path) if path else None


def rabbitmq_api_url() -> str:
    return env.url_of_kind("RABBITMQ_API_URL", env.secret("RABBITMQ_API_URL"), ("http", "https")).rstrip("/")


def hub_ca() -> Path | None:
    """Returns the certificate of the running hub's own authority; None if it has none."""
    path = services().get("hub_ca")
    return Path(path) if path else None


def broker_of(url: str) -> str:
    """Returns the URL with which Celery connects to the Redis server that redis-py finds at `url`."""
    if not url.startswith("unix://"):
        return url
    parts = urlsplit(url)
    password = f":{parts.password}@" if parts.password else ""
    database = parse_qs(parts.query).get("db")
    return f"redis+socket://{password}{parts.path}" + (f"?virtual_host={database[0]}" if database else "")


def secret_key() -> str:
    """Returns SECRET_KEY, or the key that `up` has stored; before the first `up`, one for this process."""
    key = env.secret("SECRET_KEY")
    if key:
        return key
    if SECRET_KEY_FILE.exists():
        return SECRET_KEY_FILE.read_text().strip()
    return secrets.token_urlsafe(48)


def _listening_url() -> str:
    """Returns the URL at which the hub listens, for other machines if they may reach it."""
    host, port = bind()
    if is_open() and host in ANY_ADDRESS:
        return f"{_scheme()}://{addresses.bracketed(outer_address() or socket.gethostname())}:{port}"
    return bind().local_url


def parse_bind(name: str, value: str) -> Bind:
    host, colon, port = value.rpartition(":")
    if not colon or not port.isdigit() or not 0 < int(port) < 65536:
        raise env.EnvError(f"{name}={value} must be ADDRESS:PORT, for example 127.0.0.1:8000 or [::1]:8000")
    return Bind(host.strip("[]"), int(port))


def _scheme() -> str:
    return "http" if certificate() is None else "https"
