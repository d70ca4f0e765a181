"""Tells object storage that is mounted as a file system: reading it while training leaves GPUs waiting."""

from __future__ import annotations

import os

# Of FUSE file systems, as /proc/self/mountinfo names them: the store that is behind them.
STORES = {
    "fuse.blobfuse": "Azure Blob Storage",
    "fuse.blobfuse2": "Azure Blob Storage",
    "fuse.gcsfuse": "Google Cloud Storage",
    "fuse.geesefs": "an S3 bucket",
    "fuse.goofys": "an S3 bucket",
    "fuse.mountpoint-s3": "an S3 bucket",
    "fuse.rclone": "object storage",
    "fuse.s3fs": "an S3 bucket",
}
AZURE_FILES = ".file.core."
MOUNTS = "/proc/self/mountinfo"


def slow_mount_sentence(path: str, mounts: str = "") -> str:
    """Returns what is mounted at `path`, which has no links, with the remedy, if that is slow to train from,
    otherwise "". `mounts`: the content of /proc/self/mountinfo."""
    kind, source = _mount_of(path, mounts or _read(MOUNTS))
    if kind == "cifs" and AZURE_FILES in source:
        store, remedy = "a share of Azure Files", "copy it to object storage and name that as a datastore"
    elif kind in STORES:
        store, remedy = STORES[kind], "name its bucket or container as a datastore"
    else:
        return ""
    return (
        f"{path} is {store}, mounted as a file system: each read crosses the network, so GPUs may wait for "
        f"data. To let each node download it once instead, {remedy}."
    )


def _mount_of(path: str, mounts: str) -> tuple[str, str]:
    """Returns type and source of the file system in which the path lies."""
    longest, result = "", ("", "")
    for line in mounts.splitlines():
        first, _, last = line.partition(" - ")
        target, (kind, source) = _unescaped(first.split()[4]), last.split()[:2]
        is_above = path == target or path.startswith(f"{target.rstrip('/')}/")
        # The last of several at the same place covers the others.
        if is_above and len(target) >= len(longest):
            longest, result = target, (kind, source)
    return result


def _unescaped(text: str) -> str:
    """The kernel writes white space and backslashes as octal numbers."""
    return os.fsdecode(os.fsencode(text).decode("unicode_escape").encode("latin-1"))


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read()
