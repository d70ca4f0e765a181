"""Datastores and datasets. Written by packaging/make_sdk_records.py."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from trainhub_sdk.records.record import Record


@dataclass
class Datastore(Record):
    path: str = ""
    """Of a folder its absolute path on the nodes; otherwise what stands before each path below it."""
    host: str = ""
    """Of NFS: the name or address of the file server."""
    export: str = ""
    """Of NFS: the absolute path that the server exports."""
    options: str = ""
    """Of NFS, separated by commas: vers (3, 4, 4.0, 4.1, 4.2), nconnect (1 to 16), rsize and wsize
    (multiples of 1,024 up to 1,048,576)."""
    read_only: bool = False
    """Of NFS: whether nobody may write into it; true without it."""
    bucket: str = ""
    """Of S3."""
    endpoint: str = ""
    """Of S3 or Azure Blob: the address of another service than that of the provider."""
    region: str = ""
    """Of S3."""
    access_key_id: str = ""
    """Of S3: the public part of the access key."""
    account: str = ""
    """Of Azure Blob: the storage account."""
    container: str = ""
    """Of Azure Blob."""
    url: str = ""
    """Of HTTP: the address of the folder above the files."""
    sign_in: str = ""
    """How the store is read: secret, node, none."""
    secret: str = ""
    """The name of a secret of the workspace: the secret part of an access key; a shared access signature
    or an account key; NAME:PASSWORD or a token of a web server."""
    name: str = ""
    kind: str = ""
    """Where its data lies: folder, nfs, s3, azure_blob, http, hub."""
    description: str = ""
    created_by: str | None = None
    created_at: str = ""


@dataclass
class DatasetVersion(Record):
    dataset: str = ""
    version: int = 0
    state: str = ""
    failure: str = ""
    """Why there is no list of its files; empty if there is one."""
    files: int = 0
    """How many files it has; while they are listed, up to now."""
    bytes: int = 0
    """How large they are together."""
    manifest: str | None = None
    """The SHA-256 of the list of its files; null without one."""
    created_by: str | None = None
    created_at: str = ""
    ended_at: str | None = None
    """Since when its list is there."""


@dataclass
class Dataset(Record):
    name: str = ""
    datastore: str = ""
    path: str = ""
    """Below the datastore; empty for all of it."""
    description: str = ""
    tags: dict[str, Any] = field(default_factory=dict)
    created_by: str | None = None
    created_at: str = ""
    newest: DatasetVersion | None = None
    """The newest version that is ready; without one, the newest version."""


@dataclass
class DatasetFile(Record):
    path: str = ""
    size: int = 0
    """In bytes."""
    etag: str = ""
    """What the store says about this version of the file; may be empty."""
    modified_at: str = ""
