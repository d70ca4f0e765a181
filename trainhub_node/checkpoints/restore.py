"""Puts the checkpoint from which an attempt goes on into its working folder, before any rank lives."""

from __future__ import annotations

import logging
import os
import shutil
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path, PurePosixPath

from trainhub_launch.data.checkpoint_order import CheckpointOrder
from trainhub_launch.data.outputs import StoreFolder
from trainhub_node import records
from trainhub_node.checkpoints.entries import list_entries
from trainhub_node.link.checked_download import fetch_file
from trainhub_node.link.hub_client import HubClient
from trainhub_node.run_account import Account
from trainhub_node.rundir import RunDir
from trainhub_node.stores.store_files import StoreFiles, StoreUnusable
from trainhub_node.untrusted import removal

# At a time: one is hashed on either side while another one is on its way.
DOWNLOADS = 4
# From so many bytes on, in all files, a process of its own is worth its start.
LARGE_BYTES = 64 * 1024 * 1024
log = logging.getLogger(__name__)


def download(hub: HubClient, folder: RunDir, order: CheckpointOrder, check: Callable[[], None]) -> None:
    """Fetches the files into the attempt's own folder, each once and checked; goes on where an earlier call
    was cut off. `check` is called all the time while large files are read, and may raise. Raises HubError,
    and OSError of the disk."""
    aside = Path(folder.restored)
    if order.files:
        aside.mkdir(exist_ok=True, mode=0o700)
    if sum(file.size for file in order.files) >= LARGE_BYTES:
        _download_large(hub, folder, order, check)

    def fetch(sha256: str) -> None:
        download = partial(hub.download_checkpoint_file, folder.run, folder.attempt, sha256)
        fetch_file(download, aside / sha256, sha256, "a file of the checkpoint")

    with ThreadPoolExecutor(DOWNLOADS) as threads:
        # All that is raised comes out of the list.
        list(threads.map(fetch, dict.fromkeys(file.sha256 for file in order.files)))


def _download_large(
    hub: HubClient, folder: RunDir, order: CheckpointOrder, check: Callable[[], None]
) -> None:
    """Has the library for stores read the files from the hub, which takes much less processor time than this
    process needs. What it could not read is left to the caller."""
    source = StoreFolder(hub.checkpoint_store(folder.run, folder.attempt), "files")
    files = [(file.sha256, file.size, file.sha256) for file in order.files]
    try:
        StoreFiles(folder, source, "", check).read(files, folder.restored)
    except StoreUnusable as error:
        log.info("Run %s reads its checkpoint without the library for stores: %s", folder.run, error)


def read_from_store(folder: RunDir, order: CheckpointOrder, secret: str, check: Callable[[], None]) -> None:
    """Reads those files of the checkpoint that lie in a datastore, as `download` fetches those of the hub.
    `check` is called all the time, and may raise. Raises StoreUnusable."""
    if order.source is None:
        return
    Path(folder.restored).mkdir(exist_ok=True, mode=0o700)
    files = [(file.key, file.size, file.sha256) for file in order.stored_files]
    try:
        StoreFiles(folder, order.source, secret, check).read(files, folder.restored)
    except StoreUnusable as error:
        raise StoreUnusable(f"The checkpoint to go on from could not be read: {error}") from error


def put_in_place(folder: RunDir, order: CheckpointOrder, work: Path, account: Account | None) -> None:
    """Makes the folder of checkpoints below `work`, which no other account can enter yet, with the files that
    `download` and `read_from_store` have fetched. Records what is in it: that is no news to the hub."""
    place = work / order.folder
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    # What the source brought under these names gives way, whether it is a file or a folder.
    for name in {PurePosixPath(file.path).parts[0] for file in order.all_files}:
        existing = place / name
        if existing.is_dir():
            removal.remove_tree(str(existing))
        existing.unlink(missing_ok=True)
    uses = Counter(file.sha256 for file in order.all_files)
    for file in order.all_files:
        target = place.joinpath(*PurePosixPath(file.path).parts)
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fetched = Path(folder.restored) / file.sha256
        # The script may change each of several files with the same content.
        if uses[file.sha256] > 1 or not _link(fetched, target):
            shutil.copyfile(fetched, target)
        if account is not None:
            os.chown(target, account.uid, account.gid)
    entries = list_entries(str(work), order.folder, {})
    records.write(folder.checkpoints, {"announced": {entry.name: entry.version for entry in entries}})


def _link(fetched: Path, target: Path) -> bool:
    """Gives a fetched file a second name, which takes no time; unlike a move, the step can be repeated."""
    try:
        os.link(fetched, target)
    except OSError:
        # Another file system, or one without links.
        return False
    return True
