"""A machine becomes a node: everything that can be wrong here is found before the one-time token is spent."""

from __future__ import annotations

import hashlib
import hmac
import re
import shutil
import socket
import ssl
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from trainhub_launch.addresses import is_loopback
from trainhub_node import clock, configuration, settings
from trainhub_node.link.hub_client import Hub, HubError, Refused, Unwelcome, client, why
from trainhub_node.machine import interpreters
from trainhub_node.settings import NodeSettings, SettingsError

TOKEN = re.compile(r"(thj_[A-Za-z0-9_-]{8,})(?:\.([0-9a-f]{64}))?\Z")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,49}\Z")
WRONG_CLOCK_S = 300.0
"""From here on nothing that this machine says of times is worth anything, certificates fail, and nobody wants
it so."""


class CannotJoin(Exception):
    """The machine did not become a node; the message is a sentence that names what to change."""


@dataclass(frozen=True)
class Wish:
    """`environment`: settings of the node as variables, those of flags and of the environment alike."""

    url: str
    token: str
    folder: Path
    environment: Mapping[str, str]
    name: str = ""
    replace: bool = False
    insecure_http: bool = False


@dataclass(frozen=True)
class Joined:
    name: str
    cluster: str
    url: str
    remarks: tuple[str, ...] = ()


def join(wish: Wish) -> Joined:
    """Raises CannotJoin; then the folder is as it was before."""
    url = _url(wish.url)
    secret, fingerprint = _token(wish.token)
    _check_road(url, fingerprint, wish.insecure_http)
    if wish.name and not NAME.match(wish.name):
        raise CannotJoin(
            f"--name {wish.name} must be up to 50 letters, digits, '-' and '_', starting with a "
            "letter or digit"
        )
    _check_unused(wish)
    with _place(wish.folder):
        _check_machine(_settings(wish, url))
        ca = _authority(url, fingerprint) if fingerprint else ""
        hub = Hub(url, pem=ca)
        try:
            remarks = _check_clock(hub, url)
            told = _enrol(hub, secret, wish, url)
        finally:
            hub.close()
        _write(wish, url, told, ca)
    return Joined(name=told["name"], cluster=told["cluster"], url=url, remarks=remarks)


def _url(given: str) -> str:
    value = given.rstrip("/")
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path or parts.query:
        raise CannotJoin(
            f"URL {given} must be the hub's address alone, like https://hub.example.org or "
            "https://10.0.0.1:8000"
        )
    return value


def _token(given: str) -> tuple[str, str]:
    """(the secret, the fingerprint of the hub's own authority or nothing)."""
    found = TOKEN.match(given)
    if found:
        return found[1], found[2] or ""
    if given.startswith("thn_"):
        raise CannotJoin(
            "--token is a node's own token; a join token begins with thj_, `manage.py node token NAME` "
            "prints one"
        )
    raise CannotJoin(
        "--token is no whole join token (thj_…); copy it again as `manage.py node token NAME` printed it "
        "on the hub"
    )


def _check_road(url: str, fingerprint: str, insecure: bool) -> None:
    parts = urlsplit(url)
    if parts.scheme == "https":
        return
    if fingerprint:
        raise CannotJoin(
            f"URL {url} must begin with https://, because this token is of a hub that speaks only TLS"
        )
    if not is_loopback(parts.hostname or "") and not insecure:
        raise CannotJoin(
            f"URL {url} is not encrypted: anybody on the way could read this node's token and its runs' "
            "secrets; "
            "use https:// (start the hub with OPEN=1), or say --insecure-http where the network is "
            "yours alone"
        )


def _check_unused(wish: Wish) -> None:
    try:
        held = configuration.read(wish.folder)
    except SettingsError as error:
        if not wish.replace:
            raise CannotJoin(f"{error}") from error
        return
    if held and not wish.replace:
        raise CannotJoin(
            f"{wish.folder} is already the folder of node {held.get('name', '?')} at "
            f"{held.get('hub_url', '?')}; "
            "say --replace to join it anew, or choose another --dir"
        )


@contextmanager
def _place(folder: Path) -> Iterator[None]:
    """The folder, writable; where this fails, whatever was made for it goes again."""
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        _try(folder)
        yield
    except BaseException:
        if made and made[-1].exists():
            shutil.rmtree(made[-1])
        raise


def _try(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise CannotJoin(
            f"--dir {folder} cannot be used: {error.strerror}; choose one that this account may write"
        ) from error


def _settings(wish: Wish, url: str) -> NodeSettings:
    """As `run` will read them."""
    own = {"TRAINHUB_HUB_URL": url, "TRAINHUB_NODE_TOKEN": "to come", "TRAINHUB_NODE_DIR": str(wish.folder)}
    try:
        return settings.read({**wish.environment, **own})
    except SettingsError as error:
        raise CannotJoin(str(error)) from error


def _check_machine(found: NodeSettings) -> None:
    if not interpreters.ask(found.python, found.run_as):
        raise CannotJoin(
            f"{found.python} does not start as a Python; set TRAINHUB_NODE_PYTHON to one that works"
        )
    if found.run_as and not settings.may_run(str(found.folder.parent), found.run_as):
        raise CannotJoin(
            f"--run-as {found.run_as.name} cannot reach {found.folder}; choose a --dir below folders that "
            "everybody may pass "
            "through, like /var/lib"
        )


def _authority(url: str, fingerprint: str) -> str:
    """The hub's own authority as PEM. Whoever answered, it is the one that the token's fingerprint names."""
    nobody_yet = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    nobody_yet.check_hostname = False
    nobody_yet.verify_mode = ssl.CERT_NONE
    try:
        with client(url, nobody_yet) as asking:
            answer = asking.get("/api/v1/node/ca/")
        answer.raise_for_status()
        der = ssl.PEM_cert_to_DER_cert(answer.text.strip() + "\n")
    except httpx.HTTPStatusError as error:
        raise CannotJoin(
            f"{url} has no certificate authority of its own ({error.response.status_code}), but the token "
            "is of a hub that has; "
            "check URL and --token"
        ) from error
    except httpx.HTTPError as error:
        raise CannotJoin(_away(url, why(error))) from error
    except ValueError as error:
        raise CannotJoin(f"what answers at {url} is no TrainHub; check URL") from error
    if not hmac.compare_digest(hashlib.sha256(der).hexdigest(), fingerprint):
        raise CannotJoin(
            f"{url} does not show the certificate authority that the token names: it is another hub, or "
            "somebody may stand "
            "between; nothing was sent to it. Check URL, and take a new token from the hub itself"
        )
    return ssl.DER_cert_to_PEM_cert(der)


def _check_clock(hub: Hub, url: str) -> tuple[str, ...]:
    asked_at = time.time()
    try:
        now = hub.time()
    except HubError as error:
        raise CannotJoin(_away(url, str(error))) from error
    offset = clock.offset_s(now, asked_at, time.time()) if now else 0.0
    if abs(offset) > WRONG_CLOCK_S:
        raise CannotJoin(f"{clock.doubt(offset)}, then join again")
    return (clock.doubt(offset),) if clock.doubt(offset) else ()


def _enrol(hub: Hub, secret: str, wish: Wish, url: str) -> dict[str, str]:
    try:
        told = hub.enrol(secret, wish.name, socket.gethostname(), replace=wish.replace)
        return {name: str(told[name]) for name in ("token", "name", "cluster")}
    except Unwelcome as error:
        raise CannotJoin(
            "--token is not known to this hub; `manage.py node token NAME` there prints a new one"
        ) from error
    except Refused as error:
        raise CannotJoin(f"the hub said no: {str(error).rstrip('.')}") from error
    except HubError as error:
        remedy = "should the token be used up now, take a new one and say --replace"
        raise CannotJoin(f"{_away(url, str(error))}; {remedy}") from error
    except KeyError as error:
        raise CannotJoin(
            f"what answers at {url} is no TrainHub of this version; upgrade the hub or this machine"
        ) from error


def _write(wish: Wish, url: str, told: Mapping[str, str], ca: str) -> None:
    values = {
        name: value
        for name, variable in configuration.NAMES.items()
        if (value := wish.environment.get(variable))
    }
    own = {"hub_url": url, "token": told["token"], "name": told["name"], "cluster": told["cluster"]}
    try:
        configuration.write(wish.folder, {**values, **own}, ca)
    except OSError as error:
        raise CannotJoin(
            f"the hub took this machine in as {told['name']}, but {wish.folder} cannot be written: "
            f"{error.strerror}; "
            "mend that, take a new token, and join again with --replace"
        ) from error


def _away(url: str, error: str) -> str:
    if "certificate" in error:
        remedy = (
            "a token of a hub with an authority of its own ends with a dot and 64 digits: copy all of "
            "it, or take a new one"
        )
    else:
        remedy = "check URL, and that a firewall lets this machine reach that port"
    return f"the hub at {url} cannot be asked: {error}; {remedy}"
