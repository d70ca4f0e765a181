from __future__ import annotations

from enum import StrEnum

from trainhub_launch.data import stores


class ListingState(StrEnum):
    """LISTING: the hub or a node lists its files; UPLOADING: somebody uploads them; READY: the list is
    there and never changes; FAILED: there is none."""

    LISTING = "listing"
    UPLOADING = "uploading"
    READY = "ready"
    FAILED = "failed"


class DatastoreKind(StrEnum):
    """Where the data of a datastore lies. FOLDER: in a folder that the nodes have, such as one on a shared
    file system; HUB: on the hub itself, where people upload it; the others: in a store. From all but FOLDER
    each node downloads it."""

    FOLDER = "folder"
    S3 = stores.S3
    AZURE_BLOB = stores.AZURE_BLOB
    HTTP = stores.HTTP
    HUB = stores.HUB


# As pages name them.
KIND_WORDS = {
    DatastoreKind.FOLDER: "Folder on the nodes",
    DatastoreKind.S3: "S3 bucket",
    DatastoreKind.AZURE_BLOB: "Azure Blob container",
    DatastoreKind.HTTP: "Web server",
    DatastoreKind.HUB: "Files uploaded here",
}
