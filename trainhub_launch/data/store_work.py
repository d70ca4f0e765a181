"""What a process of its own does with a store, on the hub or on a node: lists its files, tests it, reads one
file, or makes addresses for a script.

The library that reads stores starts threads, and such a process can be ended. It reads a request (JSON) from
standard input: {"work", "store", "path", "secret", "options": of open_store, "output": the path of the list,
"folder": for temporary files, "size", "start" and "end": of the file, and what to read of it; for addresses
see store_signing}. It writes lines of JSON: how far it is, and at the end `done`, or `error` with a sentence.
A line with `piece` says how many bytes of the file follow it. The library comes as an argument, because this
package has the standard library only."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from trainhub_launch.data.manifests import ManifestWriter
from trainhub_launch.data.probe_work import LIST, READ, SIGN, TEST
from trainhub_launch.data.store_errors import explain, subject
from trainhub_launch.data.store_listing import CHUNK, ListingError, StoreListing
from trainhub_launch.data.store_signing import SigningRefused, write_addresses
from trainhub_launch.data.store_test import HASTY_OPTIONS, MAX_FILES, PIECE_BYTES, NothingThere, StoreReading
from trainhub_launch.data.stores import Store, open_store
from trainhub_launch.json_types import JsonValue


class SizeMismatch(Exception):
    """The file is not the one that was written; the message is a sentence."""


Request = dict[str, Any]
# Of a file that is read: what this process and its reader hold at a time.
MIN_PIECE_BYTES = 1024 * 1024


def carry_out(library: Any) -> None:
    """`library`: the module obstore, with its parts `store` and `exceptions` loaded."""
    request: Request = json.load(sys.stdin)
    store, path, secret = Store.from_json(request["store"]), request["path"], request["secret"]
    # The library raises some of Python's own errors in place of its own.
    errors = (library.exceptions.BaseError, FileNotFoundError, PermissionError, ValueError)
    work = {TEST: _test, LIST: _list, READ: _read, SIGN: _sign}[request["work"]]
    try:
        done = work(library, store, request)
    except (ListingError, NothingThere, SizeMismatch, SigningRefused) as error:
        say(error=str(error))
    except errors as error:
        say(error=explain(error, store, path, secret))
    else:
        say(done=done)


def say(**line: JsonValue) -> None:
    sys.stdout.write(f"{json.dumps(line)}\n")
    sys.stdout.flush()


def _list(library: Any, store: Store, request: Request) -> dict[str, JsonValue]:
    path = request["path"]
    client = open_store(library.store, store, request["secret"], request["options"])
    with Path(request["output"]).open("wb") as output:
        writer = ManifestWriter(output)
        listing = StoreListing(
            store,
            path,
            head=partial(library.head, client),
            chunks=library.list(client, path or None, chunk_size=CHUNK),
            report=lambda files, size: say(files=files, bytes=size),
        )
        is_file = listing.write(writer, request.get("folder"))
    return {"files": writer.files, "bytes": writer.bytes, "is_file": is_file, "starts": [*writer.starts]}


def _sign(library: Any, store: Store, request: Request) -> dict[str, JsonValue]:
    client = open_store(library.store, store, request["secret"], request["options"])
    write_addresses(library, client, store, request)
    return {}


def _test(library: Any, store: Store, request: Request) -> dict[str, JsonValue]:
    path = request["path"]
    options = {**HASTY_OPTIONS, **request["options"]}
    client = open_store(library.store, store, request["secret"], options)
    return StoreReading(
        store,
        path,
        head=partial(library.head, client),
        chunks=library.list(client, path or None, chunk_size=MAX_FILES),
        pieces=lambda key: library.get(client, key).stream(min_chunk_size=PIECE_BYTES),
    ).run()


def _read(library: Any, store: Store, request: Request) -> dict[str, JsonValue]:
    client = open_store(library.store, store, request["secret"], {**HASTY_OPTIONS, **request["options"]})
    path, size, start, end = request["path"], request["size"], request["start"], request["end"]
    if start == end:
        # No range is empty, and an empty file has no other.
        _check_size(store, path, size, library.head(client, path))
        return {}
    result = library.get(client, path, options={"range": (start, end)})
    _check_size(store, path, size, result.meta)
    for piece in result.stream(min_chunk_size=MIN_PIECE_BYTES):
        say(piece=len(piece))
        sys.stdout.buffer.write(piece)
        sys.stdout.flush()
    return {}


def _check_size(store: Store, path: str, size: int, meta: Mapping[str, Any]) -> None:
    if meta["size"] != size:
        raise SizeMismatch(
            f"{subject(store)} has another {path} than the run wrote: {meta['size']:,} bytes in place of "
            f"{size:,}."
        )
