"""Writes the outputs of an attempt into a store or a folder, in a process of its own that the agent starts.

The library that writes starts threads, and the credentials are in no other process. Reads a request (JSON)
from standard input: {"store", "path", "secret", "attempt": its folder, "account" and "hidden": as in its
terms, "known": names that are written already}. Writes lines of JSON: `file` for each that is there, `bytes`
that were read up to now, and at the end `done`, or `error` with a sentence."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, NoReturn

from trainhub_launch.data.stores import FOLDER, Store
from trainhub_launch.json_types import JsonValue
from trainhub_node import records
from trainhub_node.environments.builder_account import end_with_parent
from trainhub_node.outputs.folder_target import FolderTarget
from trainhub_node.outputs.output_files import OUTPUTS, PREFIXES, output_files
from trainhub_node.outputs.store_target import StoreTarget
from trainhub_node.outputs.target import ChangedMeanwhile, ReadCounter, WriteFailed
from trainhub_node.rundir import RunDir
from trainhub_node.untrusted.beneath import OutsideFolder
from trainhub_node.untrusted.run_files import open_run_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainhub_node.outputs.target import Target

PROGRESS_S = 2.0
_output = threading.Lock()
DISK_FULL = "The disk is full: make room there."


def main() -> None:
    # The agent may be killed: nobody would stop this process then.
    end_with_parent()
    os.umask(0o022)
    request = json.load(sys.stdin)
    try:
        _write_all(request)
    except WriteFailed as error:
        _say(error=str(error))
    else:
        _say(done=True)


def _write_all(request: dict[str, Any]) -> None:
    account, counter = request["account"], ReadCounter()
    threading.Thread(target=_tell_progress, args=[counter], daemon=True).start()
    target = _target(request, counter)
    folder, known = RunDir.at(request["attempt"]), set(request["known"])
    owner = account["uid"] if account else None
    files = output_files(folder, lambda _: None, {OUTPUTS: PREFIXES[OUTPUTS]})
    wanted = ((name, path) for name, path in files if name not in known)
    with ThreadPoolExecutor(target.threads) as threads:
        try:
            for name, written in _in_parallel(threads, folder, owner, target, wanted):
                if written is not None:
                    size, sha256 = written
                    _say(file={"path": name, "size": size, "sha256": sha256})
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            raise


def _in_parallel(
    threads: ThreadPoolExecutor,
    folder: RunDir,
    owner: int | None,
    target: Target,
    wanted: Iterator[tuple[str, str]],
) -> Iterator[tuple[str, tuple[int, str] | None]]:
    """Yields (name, size and SHA-256) of each file that was written, None for one that could not be read."""
    pending: dict[Future[tuple[int, str] | None], str] = {}
    for name, path in wanted:
        pending[threads.submit(_write, folder, owner, target, name, path)] = name
        if len(pending) >= 2 * target.threads:
            yield from _ended(pending)
    while pending:
        yield from _ended(pending)


def _ended(
    pending: dict[Future[tuple[int, str] | None], str],
) -> Iterator[tuple[str, tuple[int, str] | None]]:
    for future in wait(pending, return_when=FIRST_COMPLETED).done:
        yield pending.pop(future), future.result()


def _write(folder: RunDir, owner: int | None, target: Target, name: str, path: str) -> tuple[int, str] | None:
    """Returns size and SHA-256 of what was written; None for a file that cannot be read, of which the agent
    says so when it comes to it. Raises WriteFailed."""
    try:
        # Read by this descriptor only: a process of the run may still replace the file by another one.
        source = open_run_file(folder.work, path, owner)
    except (OutsideFolder, OSError):
        return None
    try:
        return target.write(name, source)
    except ChangedMeanwhile:
        return None
    except OSError as error:
        if error.errno in records.DISK_FULL:
            raise WriteFailed(DISK_FULL) from error
        raise WriteFailed(f"{name} could not be written: {error.strerror}.") from error
    finally:
        os.close(source)


def _target(request: dict[str, Any], counter: ReadCounter) -> Target:
    store, path = Store.from_json(request["store"]), request["path"]
    if store.kind == FOLDER:
        base = store.settings["path"]
        return FolderTarget(base, path, request["account"], request["hidden"], counter)
    return StoreTarget(store, path, request["secret"], counter)


def _tell_progress(counter: ReadCounter) -> None:
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
