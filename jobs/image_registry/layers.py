"""Sends layers that the hub has not stored yet while they arrive from their registry. Nodes that want the
same layer share one download."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator

import anyio
import anyio.to_thread

from environments.images.layer_download import LayerDownload
from environments.images.manifest import Layer
from jobs.image_registry.tickets import OrderedImage
from workspaces.http.threads import in_limited_threads
from workspaces.stored_files import blob_cache

PIECE_BYTES = 1024 * 1024
POLL_S = 0.02
# At once, of all images.
MAX_DOWNLOADS = 8
Key = tuple[int, str]

_limiter = anyio.CapacityLimiter(MAX_DOWNLOADS)
_downloads: dict[Key, LayerDownload] = {}
_tasks: set[asyncio.Task[None]] = set()


class LayerUnavailable(Exception):
    """A layer cannot be fetched; the message is a sentence."""


async def arriving(image: OrderedImage, layer: Layer) -> AsyncIterator[bytes]:
    """Yields the bytes of the layer while it is fetched. Raises LayerUnavailable; then the last byte has not
    been yielded."""
    download = _download(image, layer)
    descriptor = None
    sent = 0
    try:
        while not (download.is_done and sent == layer.size):
            # Asked before the file is opened: the download closes its own descriptor at its end.
            if descriptor is None:
                descriptor = download.open()
            if descriptor is not None and sent < download.written:
                size = min(PIECE_BYTES, download.written - sent)
                piece = await anyio.to_thread.run_sync(os.pread, descriptor, size, sent)
                sent += len(piece)
                yield piece
            elif download.error:
                raise LayerUnavailable(download.error)
            elif download.is_done and descriptor is None:
                # It came faster than this reader.
                path = await anyio.to_thread.run_sync(blob_cache.local_path, layer.sha256)
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            else:
                await asyncio.sleep(POLL_S)
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _download(image: OrderedImage, layer: Layer) -> LayerDownload:
    """Returns the download of this layer for the workspace, and begins it if there is none. Only the event
    loop comes here: no lock is needed."""
    key = (image.workspace.pk, layer.digest)
    download = _downloads.get(key)
    if download is None:
        download = _downloads[key] = LayerDownload(image.version, image.lock.reference, layer)
        task = asyncio.create_task(_fetch(key, download))
        # The event loop keeps only a weak reference; a node that gives up does not end the download.
        _tasks.add(task)
        task.add_done_callback(_tasks.discard)
    return download


async def _fetch(key: Key, download: LayerDownload) -> None:
    try:
        await in_limited_threads(_limiter, download.fetch)
    finally:
        _downloads.pop(key, None)
