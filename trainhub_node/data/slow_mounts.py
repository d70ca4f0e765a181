"""Tells object storage that is mounted as a file system: reading it while training leaves GPUs waiting."""

from __future__ import annotations

from trainhub_node.data.shares import mount_table

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


def slow_mount_sentence(path: str, mounts: str = "") -> str:
    """Returns what is mounted at `path`, which has no links, with the remedy, if that is slow to train from,
    otherwise "". `mounts`: the content of /proc/self/mountinfo."""
    kind, source = mount_table.find_mount(path, mounts)
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
