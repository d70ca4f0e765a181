"""Writes files of an attempt into a store or a folder, reads them there, or removes them, in a process of its
own that the agent starts.

The library for stores starts threads, and the credentials are in no other process. Reads a request (JSON)
from standard input: {"task", "store", "path": of the folder in the store, "secret", "attempt": its folder,
"account" and "hidden": as in its terms, and what the task needs}:

- `write`: "files": [name, path below the working folder, its version under its own name or ""] of each.
- `read`: "files": [name, size, SHA-256] of each; "into": the folder that gets each, named by its SHA-256.
- `remove`: "names": of folders; "keep": the files in them that stay.
- `remove_files`: "names": of files.

Writes lines of JSON: `file` for each that was written, `unread` for each that could not be, `bytes` that were
read up to now, and at the end `done`, or `error` with a sentence."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from functools import partial
from typing import Any, NoReturn, TypeVar

from trainhub_launch.data.stores import FOLDER, Store
from trainhub_launch.json_types import JsonValue
from trainhub_node import records
from trainhub_node.environments.builder_account import end_with_parent
from trainhub_node.rundir import RunDir
from trainhub_node.stores.local_folder import LocalFolder
from trainhub_node.stores.object_folder import ObjectFolder
from trainhub_node.stores.target import ByteCounter, ChangedMeanwhile, HashedPart, StoreFailed
from trainhub_node.untrusted.beneath import OutsideFolder
from trainhub_node.untrusted.run_files import open_run_file, version_of_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainhub_node.stores.target import Target

PROGRESS_S = 2.0
_output = threading.Lock()
DISK_FULL = "The disk is full: make room there."

_T = TypeVar("_T")


def main() -> None:
    # The agent may be killed: nobody would stop this process then.
    end_with_parent()
    os.umask(0o022)
    request = json.load(sys.stdin)
    counter = ByteCounter()
    threading.Thread(target=_tell_progress, args=[counter], daemon=True).start()
    try:
        TASKS[request["task"]](_target(request, counter), request)
    except StoreFailed as error:
        _say(error=str(error))
    except OSError as error:
        if error.errno not in records.DISK_FULL:
            raise
        _say(error=DISK_FULL)
    else:
        _say(done=True)


def _write(target: Target, request: dict[str, Any]) -> None:
    folder, account = RunDir.at(request["attempt"]), request["account"]
    # Read by this descriptor only: a process of the run may still replace the file by another one.
    open_file = partial(open_run_file, folder.work, owner=account["uid"] if account else None)

    def write(name: str, path: str, version: str) -> dict[str, JsonValue]:
        result = _write_one(target, open_file, name, path, version)
        if result is None:
            return {"unread": name}
        size, sha256 = result
        return {"file": {"path": name, "size": size, "sha256": sha256}}

    for line in _in_parallel(target.threads, write, request["files"]):
        _say(**line)


def _write_one(
    target: Target, open_file: Callable[[str], int], name: str, path: str, version: str
) -> tuple[int, str] | None:
    """Returns size and SHA-256 of what was written; None for a file that cannot be read or has changed.
    Raises StoreFailed."""
    try:
        source = open_file(path)
    except (OutsideFolder, OSError):
        return None
    try:
        if version and version_of_file(os.path.basename(path), os.fstat(source)) != version:
            return None
        return target.write(name, source)
    except ChangedMeanwhile:
        return None
    except OSError as error:
        if error.errno in records.DISK_FULL:
            raise StoreFailed(DISK_FULL) from error
        raise StoreFailed(f"{name} could not be written: {error.strerror}.") from error
    finally:
        os.close(source)


def _read(target: Target, request: dict[str, Any]) -> None:
    read = partial(_read_one, target, request["into"])
    # Each content once.
    files = {sha256: (name, size, sha256) for name, size, sha256 in request["files"]}
    for _ in _in_parallel(target.threads, read, files.values()):
        pass


def _read_one(target: Target, into: str, name: str, size: int, sha256: str) -> None:
    path = f"{into}/{sha256}"
    if os.path.exists(path):
        return
    with closing(HashedPart(f"{path}.part", target.counter)) as part:
        began_at = part.size
        target.read(name, size, part)
        if part.sha256 != sha256 and began_at:
            # What an earlier call has left may be the wrong part of it.
            part.clear()
            target.read(name, size, part)
        if part.sha256 != sha256:
            part.clear()
            raise StoreFailed(f"{name} is not what was saved there: it was changed or damaged since.")
    os.rename(f"{path}.part", path)


def _remove(target: Target, request: dict[str, Any]) -> None:
    # An agent that was upgraded while it ran asks as before.
    keep = frozenset(request.get("keep", ()))
    for name in request["names"]:
        target.remove(name, keep)


def _remove_files(target: Target, request: dict[str, Any]) -> None:
    for name in request["names"]:
        target.remove_file(name)


TASKS: dict[str, Callable[[Any, dict[str, Any]], None]] = {
    "write": _write,
    "read": _read,
    "remove": _remove,
    "remove_files": _remove_files,
}


def _in_parallel(count: int, work: Callable[..., _T], items: Iterable[Iterable[Any]]) -> Iterator[_T]:
    """Yields what `work` returns for the arguments in each item, in any order; `count` at a time."""
    pending: set[Future[_T]] = set()
    threads = ThreadPoolExecutor(count)
    try:
        for item in items:
            pending.add(threads.submit(work, *item))
            if len(pending) >= 2 * count:
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        yield from (future.result() for future in pending)
    finally:
        # After an error, threads that still wait for the store hold nobody.
        threads.shutdown(wait=False, cancel_futures=True)


def _target(request: dict[str, Any], counter: ByteCounter) -> Target:
    store, path = Store.from_json(request["store"]), request["path"]
    if store.kind == FOLDER:
        base = store.settings["path"]
        return LocalFolder(base, path, request["account"], request["hidden"], counter)
    return ObjectFolder(store, path, request["secret"], counter)


def _tell_progress(counter: ByteCounter) -> None:
    """Lets the agent see that a large file still moves."""
    last = 0
    while True:
        time.sleep(PROGRESS_S)
        if counter.bytes != last:
            last = counter.bytes
            _say(bytes=last)


def _say(**line: JsonValue) -> None:
    with _output:
        sys.stdout.write(f"{json.dumps(line)}\n")
        sys.stdout.flush()


def run() -> NoReturn:
    """Ends this process with the code of `main`."""
    main()
    # Threads that still wait for a store hold nobody.
    sys.stdout.flush()
    os._exit(0)
