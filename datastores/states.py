from __future__ import annotations

from enum import StrEnum


class DatastoreKind(StrEnum):
    """Where the data of a datastore lies. FOLDER: in a folder that the nodes have, such as one on a shared
    file system."""

    FOLDER = "folder"
