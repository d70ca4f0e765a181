"""Writes the addresses from which the script of a run reads a store itself, without the credentials of that.

A line of JSON for each file: `path`, below the input; `url`, from which GET reads it; `size` in bytes;
`etag`, "" if the store gives none; `expires_at`, in seconds since 1970, not for an address without
credentials."""

from __future__ import annotations

import base64
import hmac
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlencode

from trainhub_launch.data.addresses import make_url
from trainhub_launch.data.manifests import ListedFile, read_manifest
from trainhub_launch.data.stores import AZURE_BLOB, HTTP, SignIn, Store, is_sas

# Of each address, and how often all are made anew.
LIFE_S, RENEWAL_S = 6 * 3600, 3600
BATCH = 1000
SAS_VERSION = "2020-12-06"
# Nobody may write into what the script reads, not even the script.
READABLE_BY_OWNER = 0o400
Signer = Callable[[Sequence[str]], Sequence[str]]


class SigningRefused(Exception):
    """No short-lived addresses can be made. The message is a sentence."""


def find_signing_problem(store: Store, secret: str) -> str:
    """Returns why no addresses can be made with this secret, as it follows the name of the datastore; "" if
    they can."""
    if store.sign_in != SignIn.SECRET:
        return ""
    if store.kind == HTTP:
        return (
            "is read with a password or token, and a web server makes no addresses that end by themselves: "
            "leave mode out, and nodes download it"
        )
    if store.kind == AZURE_BLOB and is_sas(secret.strip()):
        return (
            "is read with a shared access signature, which can make no shorter one, and the script must not "
            "get the signature itself: store a key of the account as its secret, let nodes sign in by "
            "themselves (sign_in node), or leave mode out, and nodes download it"
        )
    return ""


def write_addresses(library: Any, client: Any, store: Store, request: dict[str, Any]) -> None:
    """Writes the addresses of the files of a list to request["output"], which appears as a whole. `library`:
    the module obstore; `request`: {"manifest": the path of the list, "path", "is_file", "secret", "owner":
    [uid, gid] of the account that alone may read them, or None}. Raises SigningRefused, and the errors of
    obstore."""
    secret = request["secret"].strip()
    if problem := find_signing_problem(store, secret):
        raise SigningRefused(f"Its datastore {problem}.")
    end = {} if store.sign_in == SignIn.NONE else {"expires_at": int(time.time()) + LIFE_S}
    path, sign = request["path"], _signer(library, client, store, secret)
    start = f"{path}/" if path else ""
    aside = f"{request['output']}.new"
    with Path(request["manifest"]).open("rb") as listed, _new_file(aside, request["owner"]) as output:
        for files in _batches(read_manifest(listed)):
            urls = sign([path if request["is_file"] else start + file.path for file in files])
            for file, url in zip(files, urls, strict=True):
                line = {"path": file.path, "url": url, "size": file.size, "etag": file.etag, **end}
                output.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
    Path(aside).rename(request["output"])


def _signer(library: Any, client: Any, store: Store, secret: str) -> Signer:
    if store.sign_in == SignIn.NONE:
        return lambda keys: [make_url(store, key) for key in keys]
    if store.kind == AZURE_BLOB and store.sign_in == SignIn.SECRET:
        return lambda keys: [sign_azure_url(store, secret, key) for key in keys]

    def sign(keys: Sequence[str]) -> Sequence[str]:
        urls: Sequence[str] = library.sign(client, "GET", keys, expires_in=timedelta(seconds=LIFE_S))
        if store.kind == AZURE_BLOB:
            _check_azure_names(keys, urls)
        return urls

    return sign


def sign_azure_url(store: Store, account_key: str, key: str) -> str:
    """Returns the address of a blob with a shared access signature for it alone. The library signs the
    encoded name, which Azure refuses unless that is the name itself."""
    settings, url = store.settings, make_url(store, key)
    end = f"{datetime.now(UTC) + timedelta(seconds=LIFE_S):%Y-%m-%dT%H:%M:%SZ}"
    protocol = "https" if url.startswith("https:") else "https,http"
    resource = f"/blob/{settings['account']}/{settings['container']}/{key}"
    # The order of Microsoft's "Create a service SAS", for this version; what is not used is an empty line.
    fields = ["r", "", end, resource, "", "", protocol, SAS_VERSION, "b", *[""] * 7]
    digest = hmac.digest(base64.b64decode(account_key), "\n".join(fields).encode(), "sha256")
    signature = base64.b64encode(digest).decode()
    query = {"sv": SAS_VERSION, "spr": protocol, "se": end, "sr": "b", "sp": "r", "sig": signature}
    return f"{url}?{urlencode(query)}"


def _check_azure_names(keys: Iterable[str], urls: Iterable[str]) -> None:
    """Raises SigningRefused for a name of which the library makes a wrong address: see sign_azure_url."""
    encoded = (key for key, url in zip(keys, urls, strict=True) if "%" in url.partition("?")[0])
    if (odd := next(encoded, None)) is not None:
        raise SigningRefused(
            f"The identity of the node can make no address of {odd}, because of the characters in its name: "
            "store a key of the account as its datastore's secret, or leave mode out, and nodes download it."
        )


def _batches(files: Iterator[ListedFile]) -> Iterator[list[ListedFile]]:
    while batch := list(islice(files, BATCH)):
        yield batch


def _new_file(path: str, owner: Sequence[int] | None) -> BinaryIO:
    # One that was not finished cannot be opened again without rights of root.
    Path(path).unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    os.fchmod(descriptor, READABLE_BY_OWNER)
    if owner is not None:
        os.fchown(descriptor, *owner)
    return os.fdopen(descriptor, "wb")
