"""Writes outputs into an object store."""

from __future__ import annotations

import threading

import obstore
import obstore.store

from trainhub_launch.data.store_errors import explain_writing
from trainhub_launch.data.stores import Store, open_store
from trainhub_node.data.listing import STORE_ERRORS
from trainhub_node.outputs.target import ChangedMeanwhile, HashedFile, ReadCounter, WriteFailed

THREADS = 8
# Up to here a file is one request. Larger ones are sent in parts, of which a store takes 10,000.
PART_BYTES, MOST_PARTS = 8 * 1024 * 1024, 9_000
# Of parts that are on their way, of one large file; one large file is written at a time.
MEMORY_BYTES = 64 * 1024 * 1024


class StoreTarget:
    threads = THREADS

    def __init__(self, store: Store, path: str, secret: str, counter: ReadCounter) -> None:
        self._store = store
        self._path = path
        self._secret = secret
        self._counter = counter
        self._one_large = threading.Lock()
        try:
            self._client: obstore.store.ObjectStore = open_store(obstore.store, store, secret)
        except STORE_ERRORS as error:
            raise WriteFailed(explain_writing(error, store, path, secret)) from error

    def write(self, name: str, source: int) -> tuple[int, str]:
        file, key = HashedFile(source, self._counter), f"{self._path}/{name}"
        try:
            if file.size <= PART_BYTES:
                obstore.put(self._client, key, b"".join(file.pieces(PART_BYTES)), use_multipart=False)
            else:
                with self._one_large:
                    self._write_large(file, key)
        except STORE_ERRORS as error:
            raise WriteFailed(explain_writing(error, self._store, key, self._secret)) from error
        return file.size, file.sha256

    def _write_large(self, file: HashedFile, key: str) -> None:
        length = max(PART_BYTES, -(-file.size // MOST_PARTS))
        try:
            obstore.put(
                self._client,
                key,
                file.pieces(length),
                chunk_size=length,
                max_concurrency=max(1, MEMORY_BYTES // length),
            )
        finally:
            # The library wraps what a generator raises.
            file.check()
        facts = obstore.head(self._client, key)
        if facts["size"] != file.size:
            raise ChangedMeanwhile
