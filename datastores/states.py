from __future__ import annotations

from enum import StrEnum

from trainhub_launch.data import shares, stores


class ListingState(StrEnum):
    """LISTING: the hub or a node lists its files; UPLOADING: somebody uploads them; READY: the list is
    there and never changes; FAILED: there is none."""

    LISTING = "listing"
    UPLOADING = "uploading"
    READY = "ready"
    FAILED = "failed"


class DatastoreKind(StrEnum):
    """Where the data of a datastore lies. FOLDER: in a folder that the nodes have, such as one on a shared
    file system; NFS: in a share that they mount; HUB: on the hub itself, where people upload it; the others:
    in a store. From all but FOLDER and NFS each node downloads it."""

    FOLDER = "folder"
    NFS = shares.NFS
    S3 = stores.S3
    AZURE_BLOB = stores.AZURE_BLOB
    HTTP = stores.HTTP
    HUB = stores.HUB


# Of these, nodes read the files where they lie.
MOUNTED_KINDS = (DatastoreKind.FOLDER, DatastoreKind.NFS)
# As pages name them.
KIND_WORDS = {
    DatastoreKind.FOLDER: "Folder on the nodes",
    DatastoreKind.NFS: "NFS share",
    DatastoreKind.S3: "S3 bucket",
    DatastoreKind.AZURE_BLOB: "Azure Blob container",
    DatastoreKind.HTTP: "Web server",
    DatastoreKind.HUB: "Files uploaded here",
}
