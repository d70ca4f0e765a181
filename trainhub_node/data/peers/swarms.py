"""The part of a download in a swarm: the nodes that exchange the files of one list."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from trainhub_node.data.data_cache import DataCache
from trainhub_node.data.peers.blocks import divide
from trainhub_node.data.peers.hub_exchange import HubExchange, SwarmTerms
from trainhub_node.data.peers.peer_transfer import PeerTransfer
from trainhub_node.data.peers.swarm_table import write_table
from trainhub_node.data.remote_file import RemoteFile

if TYPE_CHECKING:
    from obstore.store import ObjectStore

LOCK = ".lock"


class SwarmDownload:
    def __init__(self, cache: DataCache, terms: SwarmTerms) -> None:
        self._cache = cache
        self._terms = terms

    def transfer(
        self,
        client: ObjectStore,
        on_file: Callable[[RemoteFile], object],
        files: Sequence[RemoteFile],
        *,
        on_note: Callable[[str], None],
    ) -> PeerTransfer:
        """Returns what brings those of `files` that are missing, and gives this node's to the others."""
        blocks = list(divide(file.size for file in files))
        write_table(self._cache, self._terms.swarm, files, blocks)
        exchange = HubExchange(self._terms, len(blocks))
        return PeerTransfer(client, self._cache, on_file, files, blocks, exchange, on_note=on_note)


@contextmanager
def joined(
    cache: DataCache, terms: SwarmTerms | None, *, on_note: Callable[[str], None]
) -> Iterator[SwarmDownload | None]:
    """Yields the swarm once no other download of this cache is in it: that brings the same files. None if
    `terms` are None."""
    if not terms:
        yield None
        return
    file = os.open(f"{cache.swarm(terms.swarm)}{LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_note("Another run on this node is downloading the same files: waiting for it.")
            fcntl.flock(file, fcntl.LOCK_EX)
        os.utime(file)
        yield SwarmDownload(cache, terms)
    finally:
        os.close(file)
