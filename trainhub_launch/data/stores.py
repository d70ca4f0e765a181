"""Stores from which nodes download data, and the client with which they are read.

Nodes make that client with obstore, which this package does not import: it has the standard library only."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any
from urllib.parse import parse_qs, urlsplit

from trainhub_launch.json_types import JsonObject

STORE_KINDS = S3, AZURE_BLOB, HTTP, HUB = "s3", "azure_blob", "http", "hub"
# Not read by the library: the path of a folder on the nodes, so that sentences can name it.
FOLDER = "folder"
# Into which outputs can be written.
OUTPUT_KINDS = S3, AZURE_BLOB, FOLDER
# The name under which a node gets the credentials of a store among the secrets of an attempt: this, and the
# name of the secret, which has no colon.
SECRET_PREFIX = "datastore:"  # noqa: S105 - a name
DEFAULT_REGION = "us-east-1"
# A store that answers 503 or not at all is asked again for so long.
RETRY_S, READ_S, CONNECT_S = 120, 60, 15
# The shortest pause between two requests, the longest, and by how much one may be longer than the last. The
# library's own ten requests would be over within seconds where a store that restarts refuses connections.
SHORTEST_PAUSE_S, LONGEST_PAUSE_S, GROWTH = 0.5, 10, 3
# Settings that say who reads, not what.
CREDENTIALS = ("access_key_id",)
# What a node gets with its order to read files of the hub: the address, and the ticket that opens it.
HUB_SETTINGS = URL, TICKET = "url", "ticket"


class SignIn(StrEnum):
    """How a store is read. SECRET: with a secret of the workspace; NODE: with what the machine may read by
    itself, such as the role of a virtual machine; NONE: without credentials."""

    SECRET = "secret"  # noqa: S105 - a word
    NODE = "node"
    NONE = "none"


@dataclass(frozen=True)
class Store:
    """A bucket, a container, a web server, or the hub. `settings`, all of them texts: of S3 `bucket`,
    `endpoint` (none for AWS), `region` and `access_key_id`; of Azure Blob `account`, `container` and
    `endpoint` (none for Azure); of HTTP `url`; of the hub HUB_SETTINGS in orders, and none elsewhere."""

    kind: str
    sign_in: str = SignIn.NONE
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """Which bytes a path means, whatever the credentials are."""
        if self.kind == HUB:
            # A file of the hub is named by its SHA-256, whatever the address of the hub is.
            return HUB
        settings = {name: value for name, value in self.settings.items() if name not in CREDENTIALS}
        return "\n".join([self.kind, *(f"{name}={settings[name]}" for name in sorted(settings))])

    @property
    def is_shared(self) -> bool:
        """Whether nodes take its files from each other: not what comes from the hub anyway, and not from web
        servers, which are not read in blocks."""
        return self.kind not in (HTTP, HUB)

    def __str__(self) -> str:
        settings = self.settings
        if self.kind == FOLDER:
            return f"the folder {settings['path']}"
        if self.kind == S3:
            return f"the bucket {settings['bucket']}"
        if self.kind == HUB:
            return "the hub"
        if self.kind == AZURE_BLOB:
            return f"the container {settings['container']} of {settings['account']}"
        return str(urlsplit(settings["url"]).hostname)

    def to_json(self) -> JsonObject:
        return {"kind": self.kind, "sign_in": str(self.sign_in), "settings": dict(self.settings)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Store:
        return cls(data["kind"], data["sign_in"], dict(data["settings"]))


@dataclass(frozen=True)
class Client:
    """How obstore makes the client of a store: the name of a class in `obstore.store`, and the arguments."""

    class_name: str
    arguments: tuple[str, ...]
    options: Mapping[str, Any]


def client_of(store: Store, secret: str) -> Client:
    """Returns how the client of a store is made. `secret`: the value of its secret, "" without one."""
    build = {S3: _s3, AZURE_BLOB: _azure_blob, HTTP: _http, HUB: _hub}[store.kind]
    return build(store, secret if store.sign_in == SignIn.SECRET else "")


def open_store(stores: Any, store: Store, secret: str, options: Mapping[str, Any] | None = None) -> Any:
    """Returns the store as obstore reads it. `stores`: its module of that name; `options`: further ones
    of the connections, and `retry_config` if it is to be another one. Raises the errors of obstore."""
    client = client_of(store, secret)
    options = dict(options or {})
    retries = {"retry_config": options.pop("retry_config")} if "retry_config" in options else {}
    make = getattr(stores, client.class_name)
    make = make.from_url if store.kind in (HTTP, HUB) else make
    connections = {**client.options["client_options"], **options}
    return make(*client.arguments, **{**client.options, **retries, "client_options": connections})


def folder_store(path: str) -> Store:
    """Returns a folder of the nodes as sentences name it."""
    return Store(FOLDER, settings={"path": path})


def is_sas(secret: str) -> bool:
    """Returns whether the secret of an Azure store is a shared access signature, and not an account's key."""
    return "sig" in parse_qs(secret.lstrip("?"))


def may_write(secret: str) -> bool:
    """Returns whether a shared access signature permits to write new files; True if it does not say, or the
    secret is none."""
    return _has_right(secret, "cw")


def may_delete(secret: str) -> bool:
    """Returns whether a shared access signature permits to delete files, as `may_write`."""
    return _has_right(secret, "d")


def _has_right(secret: str, letters: str) -> bool:
    rights = parse_qs(secret.strip().lstrip("?")).get("sp", [""])[0]
    return not rights or bool(set(rights) & set(letters))


def sas_end(secret: str) -> datetime | None:
    """Returns when a shared access signature ends; None if it does not say, or the secret is none."""
    try:
        end = datetime.fromisoformat(parse_qs(secret.strip().lstrip("?")).get("se", [""])[0])
    except ValueError:
        return None
    return end if end.tzinfo else end.replace(tzinfo=UTC)


def _s3(store: Store, secret: str) -> Client:
    settings = store.settings
    options: dict[str, Any] = {"region": settings.get("region") or DEFAULT_REGION}
    if endpoint := settings.get("endpoint", ""):
        # Other servers than AWS seldom have a name of its own for each bucket.
        options |= {"endpoint": endpoint, "virtual_hosted_style_request": False}
    if store.sign_in == SignIn.SECRET:
        options |= {"access_key_id": settings["access_key_id"], "secret_access_key": secret.strip()}
    elif store.sign_in == SignIn.NONE:
        options["skip_signature"] = True
    return Client("S3Store", (settings["bucket"],), options | _common(settings.get("endpoint", "")))


def _azure_blob(store: Store, secret: str) -> Client:
    settings = store.settings
    options: dict[str, Any] = {"account_name": settings["account"]}
    if endpoint := settings.get("endpoint", ""):
        options["endpoint"] = endpoint
    if store.sign_in == SignIn.SECRET:
        secret = secret.strip()
        options |= {"sas_key": secret.lstrip("?")} if is_sas(secret) else {"account_key": secret}
    elif store.sign_in == SignIn.NONE:
        options["skip_signature"] = True
    return Client("AzureStore", (settings["container"],), options | _common(settings.get("endpoint", "")))


def _http(store: Store, secret: str) -> Client:
    url = store.settings["url"].rstrip("/")
    options = _common(url)
    if store.sign_in == SignIn.SECRET:
        options["client_options"] |= {"default_headers": {"authorization": _authorization(secret.strip())}}
    return Client("HTTPStore", (url,), options)


def _hub(store: Store, _: str) -> Client:
    url = store.settings[URL].rstrip("/")
    options = _common(url)
    options["client_options"] |= {"default_headers": {"authorization": f"Bearer {store.settings[TICKET]}"}}
    return Client("HTTPStore", (url,), options)


def _authorization(secret: str) -> str:
    """Returns the header for a secret: `NAME:PASSWORD`, or a token."""
    if ":" in secret:
        return f"Basic {base64.b64encode(secret.encode()).decode()}"
    return f"Bearer {secret}"


def _common(url: str) -> dict[str, Any]:
    return {
        "client_options": {
            "allow_http": url.startswith("http://"),
            "connect_timeout": f"{CONNECT_S}s",
            # Of each read: a large file may take long as a whole.
            "read_timeout": f"{READ_S}s",
            "timeout": "7 days",
        },
        "retry_config": {
            "max_retries": int(RETRY_S / SHORTEST_PAUSE_S),
            "retry_timeout": timedelta(seconds=RETRY_S),
            "backoff": {
                "init_backoff": timedelta(seconds=SHORTEST_PAUSE_S),
                "max_backoff": timedelta(seconds=LONGEST_PAUSE_S),
                "base": GROWTH,
            },
        },
    }
