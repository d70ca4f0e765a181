"""The rules for the place that a datastore names, by its kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from datastores.folder_path import MAX_LENGTH, check_folder_path
from datastores.states import DatastoreKind
from trainhub_launch.data.shares import read_share
from trainhub_launch.data.stores import DEFAULT_REGION, SignIn
from trainhub_launch.errors import SpecError

# Of S3 and of other servers that speak its protocol.
BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}\Z")
CONTAINER = re.compile(r"[a-z0-9](-?[a-z0-9]){2,62}\Z|\$(root|web)\Z")
ACCOUNT = re.compile(r"[a-z0-9]{3,24}\Z")
REGION = re.compile(r"[A-Za-z0-9-]{1,64}\Z")
KEY_ID = re.compile(r"[\x21-\x7e]{1,128}\Z")


@dataclass(frozen=True)
class Place:
    """Where the data of a datastore lies. `path`: of a folder its absolute path, otherwise what stands before
    each path below it; `secret`: the name of the workspace's secret with which it is read, "" without;
    `settings`: see trainhub_launch.data.stores.Store, and of a share trainhub_launch.data.shares.NfsShare."""

    path: str = ""
    sign_in: str = SignIn.NONE
    secret: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)


def check_place(kind: str, fields: Mapping[str, str]) -> Place:
    """Returns the place that the fields of a form or request name. Raises SpecError for the first wrong one,
    also one that this kind does not have."""
    check, names = _KINDS[DatastoreKind(kind)]
    entries = {name: value.strip() for name, value in fields.items() if value.strip()}
    odd = next((name for name in entries if name not in names), None)
    if odd is not None:
        raise SpecError(odd, f"is no setting of the kind {kind}, which has: {', '.join(names) or 'none'}")
    return check(entries)


def fields_of(kind: str) -> tuple[str, ...]:
    return _KINDS[DatastoreKind(kind)][1]


def check_path(text: str) -> str:
    """Returns the path of a store, without slashes around it; "" for all of the store. Raises SpecError."""
    path = text.strip().strip("/")
    if (
        len(path) > MAX_LENGTH
        or not path.isprintable()
        or any(part in (".", "..") or (path and not part) for part in path.split("/"))
    ):
        raise SpecError(
            "path", f"must be a path with at most {MAX_LENGTH:,} characters, without '..', such as 2024/birds"
        )
    return path


def _folder(entries: Mapping[str, str]) -> Place:
    return Place(check_folder_path(entries.get("path", "")))


def _nfs(entries: Mapping[str, str]) -> Place:
    share = read_share(
        entries.get("host", ""),
        entries.get("export", ""),
        entries.get("options", ""),
        entries.get("read_only", ""),
    )
    return _store(entries, SignIn.NONE, "", share.to_settings())


def _s3(entries: Mapping[str, str]) -> Place:
    bucket = entries.get("bucket", "")
    if not BUCKET.match(bucket):
        raise SpecError(
            "bucket", "must be the name of a bucket, such as my-team-data, without s3:// before it"
        )
    region = entries.get("region", DEFAULT_REGION)
    if not REGION.match(region):
        raise SpecError("region", f"must be a region, such as {DEFAULT_REGION}")
    sign_in, secret = _sign_in(entries)
    key_id = entries.get("access_key_id", "")
    if sign_in == SignIn.SECRET and not KEY_ID.match(key_id):
        raise SpecError(
            "access_key_id", "must be the id of the access key, whose secret part is in the secret"
        )
    if sign_in != SignIn.SECRET and key_id:
        raise SpecError("access_key_id", "stands without a secret, which holds the secret part of the key")
    settings = {"bucket": bucket, "region": region, "endpoint": _endpoint(entries), "access_key_id": key_id}
    return _store(entries, sign_in, secret, settings)


def _azure_blob(entries: Mapping[str, str]) -> Place:
    account, container = entries.get("account", ""), entries.get("container", "")
    if not ACCOUNT.match(account):
        raise SpecError("account", "must be the name of a storage account: 3 to 24 small letters and digits")
    if not CONTAINER.match(container):
        raise SpecError(
            "container", "must be the name of a container: 3 to 63 small letters, digits and hyphens"
        )
    settings = {"account": account, "container": container, "endpoint": _endpoint(entries)}
    return _store(entries, *_sign_in(entries), settings)


def _http(entries: Mapping[str, str]) -> Place:
    sign_in, secret = _sign_in(entries)
    if sign_in == SignIn.NODE:
        raise SpecError("sign_in", "a web server knows no role of a machine; use secret or none")
    url = _address("url", entries.get("url", ""), "https://data.example.org/sets/")
    return _store(entries, sign_in, secret, {"url": url})


def _hub(_: Mapping[str, str]) -> Place:
    return Place()


def _store(entries: Mapping[str, str], sign_in: str, secret: str, settings: Mapping[str, str]) -> Place:
    path = check_path(entries.get("path", ""))
    return Place(path, sign_in, secret, {name: value for name, value in settings.items() if value})


def _sign_in(entries: Mapping[str, str]) -> tuple[str, str]:
    secret = entries.get("secret", "")
    sign_in = entries.get("sign_in", SignIn.SECRET if secret else SignIn.NONE)
    if sign_in not in list(SignIn):
        raise SpecError("sign_in", f"{sign_in!r:.50} is no way to sign in; use {', '.join(SignIn)}")
    if sign_in == SignIn.SECRET and not secret:
        raise SpecError("secret", "name the workspace's secret with which the store is read")
    if sign_in != SignIn.SECRET and secret:
        raise SpecError("secret", f"is not used with sign_in {sign_in}; leave it out, or use {SignIn.SECRET}")
    return sign_in, secret


def _endpoint(entries: Mapping[str, str]) -> str:
    endpoint = entries.get("endpoint", "")
    return _address("endpoint", endpoint, "https://minio.example.org:9000") if endpoint else ""


def _address(name: str, text: str, example: str) -> str:
    remedy = f"must be an address such as {example}"
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise SpecError(name, remedy) from error
    if parts.scheme not in ("http", "https") or not host or not text.isprintable() or len(text) > MAX_LENGTH:
        raise SpecError(name, remedy)
    if parts.username is not None or parts.query or parts.fragment:
        raise SpecError(
            name, f"{remedy}, without user, password, '?' and '#': credentials are a secret of the workspace"
        )
    return text.rstrip("/")


_SIGN_IN = ("sign_in", "secret")
_KINDS: Mapping[DatastoreKind, tuple[Callable[[Mapping[str, str]], Place], tuple[str, ...]]] = {
    DatastoreKind.FOLDER: (_folder, ("path",)),
    DatastoreKind.NFS: (_nfs, ("host", "export", "path", "options", "read_only")),
    DatastoreKind.S3: (_s3, ("bucket", "path", "endpoint", "region", "access_key_id", *_SIGN_IN)),
    DatastoreKind.AZURE_BLOB: (_azure_blob, ("account", "container", "path", "endpoint", *_SIGN_IN)),
    DatastoreKind.HTTP: (_http, ("url", "path", *_SIGN_IN)),
    DatastoreKind.HUB: (_hub, ()),
}
