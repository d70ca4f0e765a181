"""A folder in an object store: what stands before the names of its objects."""

from __future__ import annotations

import threading
from contextlib import suppress

import obstore
import obstore.store

from trainhub_launch.data.store_errors import explain, explain_removing, explain_writing
from trainhub_launch.data.stores import Store, open_store
from trainhub_node.data.listing import STORE_ERRORS
from trainhub_node.stores.target import ByteCounter, ChangedMeanwhile, HashedFile, HashedPart, StoreFailed

THREADS = 8
# Up to here a file is one request. Larger ones are sent in parts, of which a store takes 10,000.
PART_BYTES, MOST_PARTS = 8 * 1024 * 1024, 9_000
# Of parts that are on their way, of one large file; one large file is written at a time.
MEMORY_BYTES = 64 * 1024 * 1024
# Of what a thread reads at a time.
STREAM_BYTES = 1024 * 1024
# S3 takes so many names in one request.
MOST_REMOVED = 1000


class ObjectFolder:
    threads = THREADS

    def __init__(self, store: Store, path: str, secret: str, counter: ByteCounter) -> None:
        self._store = store
        self._path = path
        self._secret = secret
        self.counter = counter
        self._one_large = threading.Lock()
        try:
            self._client: obstore.store.ObjectStore = open_store(obstore.store, store, secret)
        except STORE_ERRORS as error:
            raise StoreFailed(explain(error, store, path, secret)) from error

    def write(self, name: str, source: int) -> tuple[int, str]:
        file, key = HashedFile(source, self.counter), f"{self._path}/{name}"
        try:
            if file.size <= PART_BYTES:
                obstore.put(self._client, key, b"".join(file.pieces(PART_BYTES)), use_multipart=False)
            else:
                with self._one_large:
                    self._write_large(file, key)
        except STORE_ERRORS as error:
            raise StoreFailed(explain_writing(error, self._store, key, self._secret)) from error
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

    def read(self, name: str, size: int, part: HashedPart) -> None:
        key = f"{self._path}/{name}"
        if part.size >= size > 0:
            return
        try:
            # A store has no empty range.
            span: obstore.GetOptions | None = {"range": {"offset": part.size}} if part.size else None
            for block in obstore.get(self._client, key, options=span).stream(min_chunk_size=STREAM_BYTES):
                if part.size + len(block) > size:
                    return  # another file has taken its place, and no hash will be right
                part.add(memoryview(block))
        except STORE_ERRORS as error:
            raise StoreFailed(explain(error, self._store, key, self._secret)) from error

    def remove(self, name: str, keep: frozenset[str]) -> None:
        key, kept = f"{self._path}/{name}", {f"{self._path}/{path}" for path in keep}
        try:
            for chunk in obstore.list(self._client, key, chunk_size=MOST_REMOVED):
                # Another node may remove the same.
                with suppress(FileNotFoundError):
                    obstore.delete(
                        self._client, [facts["path"] for facts in chunk if facts["path"] not in kept]
                    )
        except STORE_ERRORS as error:
            raise StoreFailed(explain_removing(error, self._store, key)) from error

    def remove_file(self, name: str) -> None:
        key = f"{self._path}/{name}"
        try:
            with suppress(FileNotFoundError):
                obstore.delete(self._client, key)
        except STORE_ERRORS as error:
            raise StoreFailed(explain_removing(error, self._store, key)) from error
