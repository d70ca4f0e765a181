"""Downloads one input of a run into the node's cache, and makes the folder that the run sees.

A process of its own, which the child of an attempt starts: the library starts threads, and the credentials
are in no other process. Reads a request (JSON) from standard input, and writes lines of JSON: how far it is,
and at the end `done`, or `error` with a sentence; `note` is a sentence for the log."""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from typing import Any, NoReturn

import obstore.store

from trainhub_launch.data.store_errors import changed, explain
from trainhub_launch.data.stores import HTTP, HUB, Store, open_store
from trainhub_launch.json_types import JsonValue
from trainhub_node import records
from trainhub_node.data import cached_lists, durability, listing, space, trees
from trainhub_node.data.comparison.changed_files import ChangedFiles
from trainhub_node.data.comparison.present_files import find_present
from trainhub_node.data.data_cache import DataCache
from trainhub_node.data.errors import DataError
from trainhub_node.data.peers import swarms
from trainhub_node.data.peers.hub_exchange import SwarmTerms
from trainhub_node.data.remote_file import RemoteFile
from trainhub_node.data.transfer import Transfer, TransferFailed, WrongContent, WrongSize
from trainhub_node.environments.builder_account import end_with_parent

PROGRESS_S = 1.0
# A store that accepts connections and sends nothing, although each request was repeated.
STALLED_S = 180.0
DISK_FULL = (
    "The disk of this node's cache is full: ask its operator to make room. What has arrived is kept for the "
    "next run."
)


class _Progress:
    """Writes how far a transfer is. `total_files` and `total_bytes`: of the whole input."""

    def __init__(self, transfer: Transfer, total_files: int, total_bytes: int) -> None:
        self._transfer = transfer
        self._totals = {"total_files": total_files, "total_bytes": total_bytes}
        # What the cache had before.
        self._here = (total_files, total_bytes)
        self._last = (0, 0)
        self._moved_at = self._line_at = time.monotonic()

    def set_missing(self, files: int, size: int) -> None:
        self._here = (self._here[0] - files, self._here[1] - size)

    def poll(self) -> None:
        """Raises DataError if nothing has arrived for too long."""
        now, state = time.monotonic(), (self._transfer.files, self._transfer.bytes)
        # Hashing a large file takes long, and so may another run that downloads what this one waits for.
        if state != self._last or self._transfer.not_at_store:
            self._last, self._moved_at = state, now
        elif now - self._moved_at > STALLED_S:
            raise DataError(
                f"Nothing has arrived for {STALLED_S:.0f} seconds although the store was asked again and "
                "again: is it overloaded? Start the run again later; what has arrived is kept."
            )
        if now - self._line_at >= PROGRESS_S:
            self._line_at = now
            _say(files=self._here[0] + state[0], bytes=self._here[1] + state[1], **self._totals)


def main() -> None:
    # The child may be killed: nobody would stop this process then.
    end_with_parent()
    os.umask(0o022)
    request = json.load(sys.stdin)
    try:
        _say(done=_fetch(request))
    except DataError as error:
        _say(error=str(error))
    except OSError as error:
        if error.errno not in records.DISK_FULL:
            raise
        _say(error=DISK_FULL)


def _fetch(request: dict[str, Any]) -> dict[str, JsonValue]:
    began_at, clock_at = time.monotonic(), time.time()
    cache = DataCache(request["cache"], request["agent"])
    cache.make()
    with space.alone(cache):
        durability.check_after_restart(cache)
    store, secret = Store.from_json(request["store"]), request["secret"]
    client = _client(store, secret)
    files, changes = _files(request, client, store)
    gc.freeze()  # They stay to the end: the collector need not look at them again and again.
    target = f"{cache.tree(request['attempt'])}/{request['input']}"
    tree = _tree(request, cache, target)
    # Other nodes, and later runs, take a list of this key for exactly the files of the version.
    is_exact = not changes.count
    terms = SwarmTerms(**request["peers"]) if is_exact and _can_share(request, store) else None
    with swarms.joined(cache, terms, on_note=_note) as swarm:
        # First what is here: nothing that makes room removes it any more.
        absent = [file for file in files if not tree.add(file)]
        # Files of the hub are known by their content, which several may have.
        missing = [*{file.identity: file for file in reversed(absent)}.values()]
        transfer = (
            Transfer(client, cache, tree.link, has_pieces=store.kind != HTTP)
            if swarm is None
            else swarm.transfer(client, tree.link, files, on_note=_note)
        )
        if missing:
            needed = sum(file.size for file in missing)
            progress = _Progress(transfer, len(files), sum(file.size for file in files))
            progress.set_missing(len(missing), needed)
            with space.reserve(cache, request["attempt"], needed, request["limit"]):
                _run(transfer, missing, progress, request, store)
                for file in set(absent).difference(missing):
                    tree.add(file)
        else:
            # Other nodes learn that everything is here.
            transfer.run([], lambda: None)
    tree.finish()
    if is_exact and (key := request.get("list_key")):
        cached_lists.note_list(cache, key, clock_at)
    is_file = request["path"] and files[0].key == request["path"]
    return {
        "path": f"{target}/{files[0].path}" if is_file else target,
        "files": len(files),
        "bytes": sum(file.size for file in files),
        "downloaded_files": transfer.files,
        "downloaded_bytes": transfer.bytes,
        "peer_bytes": transfer.bytes_from_peers,
        "seconds": time.monotonic() - began_at,
        "changes": changes.to_json(),
    }


def _can_share(request: dict[str, Any], store: Store) -> bool:
    # Earlier hubs name other nodes for every store.
    return bool(request.get("peers")) and store.is_shared


def _tree(request: dict[str, Any], cache: DataCache, target: str) -> trees.Tree:
    # The child that asks may be of an earlier version, which was upgraded meanwhile.
    owner = request.get("owner")
    return trees.Tree(cache, target, copies=request["copies"], group=request["group"], owner=owner)


def _files(
    request: dict[str, Any], client: obstore.store.ObjectStore, store: Store
) -> tuple[list[RemoteFile], ChangedFiles]:
    """Returns what is to be there, and what of that is not as in the version."""
    path, scope, manifest = request["path"], request["scope"], request["manifest"]
    if not manifest:
        return listing.list_files(client, store, path, scope, request["secret"]), ChangedFiles()
    files = listing.listed_files(manifest, store, path, scope, is_file=request["is_file"])
    # A file of the hub is named by its content.
    if not request.get("uses_changed") or store.kind == HUB:
        return files, ChangedFiles()
    return find_present(client, store, files, path=path, scope=scope, secret=request["secret"])


def _run(
    transfer: Transfer, missing: list[RemoteFile], progress: _Progress, request: dict[str, Any], store: Store
) -> None:
    # Of files that are taken as they are now the list says nothing.
    is_listed = bool(request["manifest"]) and not request.get("uses_changed")
    try:
        transfer.run(missing, progress.poll)
    except WrongSize as error:
        raise DataError(changed(store, error.file.key, is_listed=is_listed)) from error
    except WrongContent as error:
        raise DataError(
            f"{error.file.path} arrived from the hub with another content than its list says: was it damaged "
            "on the way, or on the hub's disk? Start the run again; if that fails, ask the hub's operator."
        ) from error
    except TransferFailed as error:
        cause = error.__cause__ or error
        key = error.file.path if store.kind == HUB else error.file.key
        raise DataError(explain(cause, store, key, request["secret"], is_listed=is_listed)) from error


def _client(store: Store, secret: str) -> obstore.store.ObjectStore:
    try:
        result: obstore.store.ObjectStore = open_store(obstore.store, store, secret)
    except listing.STORE_ERRORS as error:
        raise DataError(explain(error, store, "", secret)) from error
    return result


def _note(sentence: str) -> None:
    _say(note=sentence)


def _say(**line: JsonValue) -> None:
    sys.stdout.write(f"{json.dumps(line)}\n")
    sys.stdout.flush()


def run() -> NoReturn:
    """Ends this process with the code of `main`."""
    main()
    # Threads that still wait for a store hold nobody.
    sys.stdout.flush()
    os._exit(0)
