"""Puts the checkpoint from which an attempt goes on into its working folder, before any rank lives."""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path, PurePosixPath

from trainhub_launch.order import CheckpointOrder
from trainhub_node import records
from trainhub_node.checkpoints.entries import list_entries
from trainhub_node.link.checked_download import fetch_file
from trainhub_node.link.hub_client import HubClient
from trainhub_node.run_account import Account
from trainhub_node.rundir import RunDir
from trainhub_node.untrusted import removal


def download(hub: HubClient, folder: RunDir, order: CheckpointOrder) -> None:
    """Fetches the files into the attempt's own folder, each once and checked; goes on where an earlier call
    was cut off. Raises HubError, and OSError of the disk."""
    aside = Path(folder.restored)
    if order.files:
        aside.mkdir(exist_ok=True, mode=0o700)
    for sha256 in dict.fromkeys(file.sha256 for file in order.files):
        download = partial(hub.download_checkpoint_file, folder.run, folder.attempt, sha256)
        fetch_file(download, aside / sha256, sha256, "a file of the checkpoint")


def put_in_place(folder: RunDir, order: CheckpointOrder, work: Path, account: Account | None) -> None:
    """Makes the folder of checkpoints below `work`, which no other account can enter yet, with the files that
    `download` has fetched. Records what is in it: that is no news to the hub."""
    place = work / order.folder
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    # What the source brought under these names gives way, whether it is a file or a folder.
    for name in {PurePosixPath(file.path).parts[0] for file in order.files}:
        existing = place / name
        if existing.is_dir():
            removal.remove_tree(str(existing))
        existing.unlink(missing_ok=True)
    for file in order.files:
        target = place.joinpath(*PurePosixPath(file.path).parts)
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Copied and not moved: two paths may have the same content, and a step that fails is repeated.
        shutil.copyfile(Path(folder.restored) / file.sha256, target)
        if account is not None:
            os.chown(target, account.uid, account.gid)
    entries = list_entries(str(work), order.folder, {})
    records.write(folder.checkpoints, {"announced": {entry.name: entry.version for entry in entries}})
