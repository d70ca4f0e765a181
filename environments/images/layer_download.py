"""Fetches layers from the registry of an image into the store of the hub, each once, and lets others read
what has arrived so far."""

from __future__ import annotations

import errno
import logging
import os
import threading
from collections.abc import Iterator

from environments.images import image_store
from environments.images.locking import read_login
from environments.images.manifest import Layer
from environments.images.reference import parse_reference
from environments.images.registry_client import RegistryClient
from environments.images.registry_error import RegistryError
from environments.models import EnvironmentVersion
from workspaces.stored_files import blobs
from workspaces.stored_files.blob_writer import BlobWriter

log = logging.getLogger(__name__)
# Slower registries are given up.
MIN_BYTES_PER_S = 100_000
BASE_S = 120.0


class LayerDownload:
    """A layer on its way. `written`: bytes that can be read; the last one only once the SHA-256 of all is
    right. `error`: a sentence, "" as long as there is none."""

    def __init__(self, version: EnvironmentVersion, reference: str, layer: Layer) -> None:
        self.layer = layer
        self.error = ""
        self.is_done = False
        self._is_stopped = False
        self._version, self._reference = version, reference
        self._size = 0
        self._descriptor: int | None = None
        self._lock = threading.Lock()

    @property
    def written(self) -> int:
        return self.layer.size if self.is_done else min(self._size, self.layer.size - 1)

    def open(self) -> int | None:
        """Returns a descriptor for reading, which the caller closes; None before there is a file, and
        after the end."""
        with self._lock:
            return None if self._descriptor is None else os.dup(self._descriptor)

    def stop(self) -> None:
        """Ends `fetch` at the next bytes that come."""
        self._is_stopped = True

    def fetch(self) -> None:
        """Fetches the layer. Sets `is_done`, or `error`."""
        try:
            self._fetch()
        except RegistryError as error:
            self.error = str(error)
        except OSError as error:
            is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            log.exception("A layer could not be stored")
            self.error = (
                "The disk of the hub is full. An operator frees space in its data folder."
                if is_full
                else "The hub could not store a layer; an operator finds the reason in its log."
            )
        except Exception:
            log.exception("Fetching a layer failed")
            self.error = "The hub itself failed at a layer; an operator finds the reason in its log."
        finally:
            with self._lock:
                if self._descriptor is not None:
                    os.close(self._descriptor)
                    self._descriptor = None

    def _fetch(self) -> None:
        workspace = self._version.environment.owner
        if image_store.is_stored(self._version, workspace, self.layer.sha256, self.layer.size):
            # Another download has ended between the caller's look and this one.
            self.is_done = True
            return
        reference = parse_reference(self._reference)
        max_s = BASE_S + self.layer.size / MIN_BYTES_PER_S
        client = RegistryClient(reference, read_login(self._version), max_s=max_s)
        with client.open_blob(self.layer.digest) as pieces, BlobWriter() as writer:
            with self._lock:
                self._descriptor = writer.open_to_read()
            for piece in self._limited(pieces):
                writer.write(piece)
                writer.flush()
                self._size = writer.size
            try:
                writer.finish(self.layer.sha256)
            except blobs.BlobError as error:
                raise RegistryError(
                    f"The registry {reference.registry} sent other bytes than those of {self.layer.digest}. "
                    "Ask its operator."
                ) from error
        image_store.record(self._version, self.layer.sha256, self.layer.size)
        self.is_done = True

    def _limited(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        size = 0
        for piece in pieces:
            size += len(piece)
            if self._is_stopped:
                raise RegistryError("Nobody needs the layer any more.")
            if size > self.layer.size:
                raise RegistryError(f"The registry sent more than the {self.layer.size:,} bytes of a layer.")
            yield piece
