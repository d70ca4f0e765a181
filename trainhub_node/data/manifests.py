"""Fetches the lists of the files that an attempt downloads from the hub."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from trainhub_launch.order import NodeOrder
from trainhub_node.link.checked_download import fetch_file
from trainhub_node.link.hub_client import HubClient
from trainhub_node.rundir import RunDir


def fetch_manifests(hub: HubClient, folder: RunDir, order: NodeOrder) -> None:
    """Puts each list into the attempt's own folder. Raises HubError, and OSError of the disk."""
    stores = (*order.downloads.values(), *order.references.values())
    for sha256 in {item.manifest for item in stores if item.manifest} | {
        item.manifest for item in order.lists.values()
    }:
        download = partial(hub.download_manifest, folder.run, folder.attempt, sha256)
        target = Path(folder.manifest(sha256))
        target.parent.mkdir(exist_ok=True, mode=0o700)
        fetch_file(download, target, sha256, "the list of the files of a dataset")
