"""Makes this machine a node. Everything that can be checked here is checked before the one-time token is
used."""

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
from trainhub_node import clock, configuration, run_account, settings
from trainhub_node.link.hub_client import (
    HubClient,
    HubError,
    RequestRejected,
    TokenRejected,
    describe_error,
    http_client,
)
from trainhub_node.machine import interpreters
from trainhub_node.settings import NodeSettings, SettingsError
from trainhub_node.upgrade import program_record

TOKEN = re.compile(r"(thj_[A-Za-z0-9_-]{8,})(?:\.([0-9a-f]{64}))?\Z")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,49}\Z")
# With a larger offset, no time from this machine is useful, and certificates fail.
MAX_CLOCK_OFFSET_S = 300.0


class JoinError(Exception):
    """The machine did not become a node; the message is a sentence that names what to change."""


@dataclass(frozen=True)
class JoinRequest:
    """The parameters of `join_hub`. `environment`: the node's settings as variables, from options and from
    the environment."""

    url: str
    token: str
    folder: Path
    environment: Mapping[str, str]
    name: str = ""
    replace: bool = False
    allow_http: bool = False


@dataclass(frozen=True)
class NodeIdentity:
    name: str
    cluster: str
    url: str
    warnings: tuple[str, ...] = ()


def join_hub(request: JoinRequest) -> NodeIdentity:
    """Joins the hub. Raises JoinError; the folder is then as it was before."""
    url = _url(request.url)
    secret, fingerprint = _token(request.token)
    _check_encryption(url, fingerprint, request.allow_http)
    if request.name and not NAME.match(request.name):
        raise JoinError(
            f"--name {request.name} must be up to 50 letters, digits, '-' and '_', starting with a "
            "letter or digit"
        )
    _check_unused(request)
    with _writable_folder(request.folder):
        node_settings = _settings(request, url)
        _check_machine(node_settings)
        ca = fetch_authority(url, fingerprint) if fingerprint else _given_authority(node_settings)
        hub = HubClient(url, pem=ca)
        try:
            warnings = _check_clock(hub, url)
            node = _enrol(hub, secret, request, url)
        finally:
            hub.close()
        _write(request, url, node, ca)
    return NodeIdentity(name=node["name"], cluster=node["cluster"], url=url, warnings=warnings)


def _url(url: str) -> str:
    value = url.rstrip("/")
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path or parts.query:
        raise JoinError(
            f"URL {url} must be the hub's address alone, like https://hub.example.org or "
            "https://10.0.0.1:8000"
        )
    return value


def _token(token: str) -> tuple[str, str]:
    """Returns (the secret, the fingerprint of the hub's own authority or "")."""
    match = TOKEN.match(token)
    if match:
        return match[1], match[2] or ""
    if token.startswith("thn_"):
        raise JoinError(
            "--token is a node's own token; a join token begins with thj_, `manage.py node token NAME` "
            "prints one"
        )
    raise JoinError(
        "--token is no whole join token (thj_…); copy it again as `manage.py node token NAME` printed it "
        "on the hub"
    )


def _check_encryption(url: str, fingerprint: str, allow_http: bool) -> None:
    parts = urlsplit(url)
    if parts.scheme == "https":
        return
    if fingerprint:
        raise JoinError(
            f"URL {url} must begin with https://, because this token is of a hub that speaks only TLS"
        )
    if not is_loopback(parts.hostname or "") and not allow_http:
        raise JoinError(
            f"URL {url} is not encrypted: anybody on the way could read this node's token and its runs' "
            "secrets; "
            "use https:// (start the hub with OPEN=1), or add --insecure-http where the network is "
            "yours alone"
        )


def _check_unused(request: JoinRequest) -> None:
    try:
        existing = configuration.read(request.folder)
    except SettingsError as error:
        if not request.replace:
            raise JoinError(f"{error}") from error
        return
    if existing and not request.replace:
        raise JoinError(
            f"{request.folder} is already the folder of node {existing.get('name', '?')} at "
            f"{existing.get('hub_url', '?')}; "
            "add --replace to join again, or choose another --dir"
        )


@contextmanager
def _writable_folder(folder: Path) -> Iterator[None]:
    """Makes the folder; if the block fails, everything made for it is removed again."""
    created = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        _check_writable(folder)
        yield
    except BaseException:
        if created and created[-1].exists():
            shutil.rmtree(created[-1])
        raise


def _check_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise JoinError(
            f"--dir {folder} cannot be used: {error.strerror}; choose one that this account may write"
        ) from error


def _settings(request: JoinRequest, url: str) -> NodeSettings:
    """Returns the settings as `run` will read them."""
    variables = {
        "TRAINHUB_HUB_URL": url,
        "TRAINHUB_NODE_TOKEN": "to come",
        "TRAINHUB_NODE_DIR": str(request.folder),
    }
    try:
        return settings.read({**request.environment, **variables})
    except SettingsError as error:
        raise JoinError(str(error)) from error


def _check_machine(node_settings: NodeSettings) -> None:
    if not interpreters.python_version(node_settings.python, node_settings.run_as):
        raise JoinError(
            f"{node_settings.python} does not start as a Python; set TRAINHUB_NODE_PYTHON to one that works"
        )
    if node_settings.run_as and not run_account.can_execute(
        str(node_settings.folder.parent), node_settings.run_as
    ):
        raise JoinError(
            f"--run-as {node_settings.run_as.name} cannot reach {node_settings.folder}; choose a "
            "--dir below folders that everybody may pass through, like /var/lib"
        )


def fetch_authority(url: str, fingerprint: str) -> str:
    """Returns the hub's own authority as PEM. The token's fingerprint proves it, whichever server answers."""
    # Nothing secret is sent over this connection, and its answer is compared with the token's fingerprint.
    unverified = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unverified.check_hostname = False
    unverified.verify_mode = ssl.CERT_NONE
    try:
        with http_client(url, unverified) as client:
            answer = client.get("/api/v1/node/ca/")
        answer.raise_for_status()
        der = ssl.PEM_cert_to_DER_cert(answer.text.strip() + "\n")
    except httpx.HTTPStatusError as error:
        raise JoinError(
            f"{url} has no certificate authority of its own ({error.response.status_code}), but the token "
            "is of a hub that has; "
            "check URL and --token"
        ) from error
    except httpx.HTTPError as error:
        raise JoinError(_unreachable(url, describe_error(error))) from error
    except ValueError as error:
        raise JoinError(f"what answers at {url} is not a TrainHub; check URL") from error
    if not hmac.compare_digest(hashlib.sha256(der).hexdigest(), fingerprint):
        raise JoinError(
            f"{url} does not show the certificate authority that the token names: it is another hub, or "
            "somebody may stand "
            "between; nothing was sent to it. Check URL, and take a new token from the hub itself"
        )
    return ssl.DER_cert_to_PEM_cert(der)


def _given_authority(node_settings: NodeSettings) -> str:
    """Returns the authority that TRAINHUB_HUB_CA names, as PEM, "" for those that this machine trusts. Its
    file is kept with the node, because the service that runs it may not have that variable."""
    return node_settings.hub_ca.read_text() if node_settings.hub_ca else ""


def _check_clock(hub: HubClient, url: str) -> tuple[str, ...]:
    requested_at = time.time()
    try:
        now = hub.server_time()
    except HubError as error:
        raise JoinError(_unreachable(url, str(error))) from error
    offset = clock.offset_s(now, requested_at, time.time()) if now else 0.0
    if abs(offset) > MAX_CLOCK_OFFSET_S:
        raise JoinError(f"{clock.warning(offset)}, then join again")
    return (clock.warning(offset),) if clock.warning(offset) else ()


def _enrol(hub: HubClient, secret: str, request: JoinRequest, url: str) -> dict[str, str]:
    try:
        node = hub.enrol(secret, request.name, socket.gethostname(), replace=request.replace)
        return {name: str(node[name]) for name in ("token", "name", "cluster")}
    except TokenRejected as error:
        raise JoinError(
            "--token is not known to this hub; `manage.py node token NAME` there prints a new one"
        ) from error
    except RequestRejected as error:
        raise JoinError(f"the hub refused: {str(error).rstrip('.')}") from error
    except HubError as error:
        remedy = "if the token has been used by now, take a new one and add --replace"
        raise JoinError(f"{_unreachable(url, str(error))}; {remedy}") from error
    except KeyError as error:
        raise JoinError(
            f"what answers at {url} is not a TrainHub of this version; upgrade the hub or this machine"
        ) from error


def _write(request: JoinRequest, url: str, node: Mapping[str, str], ca: str) -> None:
    values = {
        name: value
        for name, variable in configuration.NAMES.items()
        if (value := request.environment.get(variable))
    }
    values_of_hub = {"hub_url": url, "token": node["token"], "name": node["name"], "cluster": node["cluster"]}
    try:
        configuration.write(request.folder, {**values, **values_of_hub}, ca)
        program_record.forget_hub(request.folder)
    except OSError as error:
        raise JoinError(
            f"the hub accepted this machine as {node['name']}, but {request.folder} cannot be written: "
            f"{error.strerror}; "
            "correct that, take a new token, and join again with --replace"
        ) from error


def _unreachable(url: str, error: str) -> str:
    if "certificate" in error:
        remedy = (
            "a token of a hub with an authority of its own ends with a dot and 64 digits: copy all of "
            "it, or take a new one"
        )
    else:
        remedy = "check URL, and that a firewall lets this machine reach that port"
    return f"the hub at {url} cannot be reached: {error}; {remedy}"
