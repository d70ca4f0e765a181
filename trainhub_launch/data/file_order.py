"""Puts the files of a store into the order of a manifest, in bounded memory."""

from __future__ import annotations

import heapq
import pickle
import tempfile
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from trainhub_launch.data.manifests import ListedFile, order_key

# So many are sorted in memory, some 50 MB.
RUN_FILES = 100_000


def in_order(
    files: Iterable[ListedFile], run_files: int = RUN_FILES, folder: str | None = None
) -> Iterator[ListedFile]:
    """Yields the files in the order of a manifest. Stores list by the bytes of names, which is nearly the
    same. What does not fit into memory lies in temporary files meanwhile, in `folder` if there is one."""
    runs: list[Iterator[ListedFile]] = []
    batch: list[ListedFile] = []
    for file in files:
        batch.append(file)
        if len(batch) == run_files:
            runs.append(_stored(_sorted(batch), folder))
            batch = []
    return heapq.merge(*runs, _sorted(batch), key=_key)


def _key(file: ListedFile) -> str:
    return order_key(file.path)


def _sorted(batch: list[ListedFile]) -> Iterator[ListedFile]:
    return iter(sorted(batch, key=_key))


def _stored(files: Iterator[ListedFile], folder: str | None) -> Iterator[ListedFile]:
    output = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed with the generator
    for file in files:
        pickle.dump(tuple(file), output)
    output.seek(0)
    return _read(output)


def _read(stream: BinaryIO) -> Iterator[ListedFile]:
    with stream:
        while True:
            try:
                # This process has written it a moment ago.
                yield ListedFile(*pickle.load(stream))  # noqa: S301
            except EOFError:
                return
