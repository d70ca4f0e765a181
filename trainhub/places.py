"""Where this installation keeps and finds things. No Django here: the supervisor reads the same answers as settings."""

from __future__ import annotations

import json
import secrets
import socket
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from trainhub import env

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = env.folder("DATA_DIR", BASE_DIR / "data")
NODE_DIR = env.folder("NODE_DIR", DATA_DIR / "node")
RUN_AS = env.text("RUN_AS", "")
LOG_LEVEL = env.choice("LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR"))
SERVICES_FILE = DATA_DIR / "run" / "services.json"
SECRET_KEY_FILE = DATA_DIR / "secret-key"
NODE_TOKEN_FILE = DATA_DIR / "node-token"
LOGS = DATA_DIR / "logs"
ANY_ADDRESS = ("", "0.0.0.0", "::")  # noqa: S104 - compared with, never bound by itself


REDIS_KINDS = ("redis", "rediss", "unix")
BROKER_KINDS = ("redis", "rediss", "redis+socket", "amqp", "amqps")


class Bind(NamedTuple):
    host: str
    port: int

    @property
    def local_url(self) -> str:
        """How this machine itself reaches the hub."""
        host = "127.0.0.1" if self.host in ANY_ADDRESS else self.host
        return f"http://{_bracketed(host)}:{self.port}"


def bind() -> Bind:
    value = env.text("BIND", "127.0.0.1:8000")
    host, colon, port = value.rpartition(":")
    if not colon or not port.isdigit() or not 0 < int(port) < 65536:
        raise env.EnvError(f"BIND={value} must be ADDRESS:PORT, for example 127.0.0.1:8000 or [::1]:8000")
    return Bind(host.strip("[]"), int(port))


def public_url() -> str:
    """PUBLIC_URL without a slash at its end, or the local address where none is given."""
    value = env.text("PUBLIC_URL", "").rstrip("/")
    if not value:
        return bind().local_url
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path:
        raise env.EnvError(f"PUBLIC_URL={value} must be like https://trainhub.example.org, without a path")
    return value


def known_public_url() -> str:
    """Like `public_url`, but a command that is given neither PUBLIC_URL nor BIND asks the TrainHub that runs."""
    if env.text("PUBLIC_URL", "") or env.text("BIND", ""):
        return public_url()
    return services().get("public_url") or public_url()


def own_hosts() -> list[str]:
    """The host names and addresses under which this hub may be asked without further setting."""
    hosts = {"localhost", "127.0.0.1", "[::1]", urlsplit(public_url()).hostname or ""}
    host = bind().host
    hosts |= {socket.gethostname(), _address_in_use()} if host in ANY_ADDRESS else {_bracketed(host)}
    return sorted(_bracketed(item) for item in hosts if item)


def services() -> dict[str, str]:
    """What the running `manage.py up` says about itself; empty when none runs."""
    try:
        text = SERVICES_FILE.read_text()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise env.EnvError(f"{SERVICES_FILE} cannot be read: {error.strerror}. Run as the account that runs TrainHub.") from error
    try:
        return dict(json.loads(text))
    except ValueError as error:
        raise env.EnvError(f"{SERVICES_FILE} is damaged; stop TrainHub and start it again") from error


def redis_url() -> str:
    return given_redis_url() or services().get("redis_url") or "redis://127.0.0.1:6379/0"


def given_redis_url() -> str:
    return _of_kind("REDIS_URL", env.secret("REDIS_URL"), REDIS_KINDS)


def broker_url() -> str:
    return given_broker_url() or broker_of(redis_url())


def given_broker_url() -> str:
    return _of_kind("BROKER_URL", env.secret("BROKER_URL"), BROKER_KINDS)


def broker_of(url: str) -> str:
    """The URL that Celery wants for the Redis server that redis-py finds at `url`."""
    if not url.startswith("unix://"):
        return url
    parts = urlsplit(url)
    password = f":{parts.password}@" if parts.password else ""
    database = parse_qs(parts.query).get("db")
    return f"redis+socket://{password}{parts.path}" + (f"?virtual_host={database[0]}" if database else "")


def secret_key() -> str:
    """SECRET_KEY, or the key that `up` made; before the first `up` one that lasts as long as the process."""
    given = env.secret("SECRET_KEY")
    if given:
        return given
    if SECRET_KEY_FILE.exists():
        return SECRET_KEY_FILE.read_text().strip()
    return secrets.token_urlsafe(48)


def _of_kind(name: str, url: str, kinds: tuple[str, ...]) -> str:
    """`url` where it is empty or of a known kind. The message leaves out the rest of it, which may hold a password."""
    if url and url.partition("://")[0] not in kinds:
        raise env.EnvError(f"{name} must start with one of {', '.join(f'{kind}://' for kind in kinds)}")
    return url


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _address_in_use() -> str:
    """This machine's address on the way to others; choosing a route sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return ""
        return str(probe.getsockname()[0])
