"""Watches the folders of checkpoints of running attempts, and delivers what the hub takes, beside the run: no
rank ever waits for it."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from trainhub_launch.data.checkpoint_order import CheckpointOrder
from trainhub_launch.states import Phase
from trainhub_node import records
from trainhub_node.attempts import attempt_list
from trainhub_node.attempts.attempt_list import Attempts, Key
from trainhub_node.checkpoints.checkpoint_stores import CheckpointStores
from trainhub_node.checkpoints.entries import Entry
from trainhub_node.checkpoints.part_delivery import PartRequest, deliver_part
from trainhub_node.checkpoints.renames import RenameWatch
from trainhub_node.checkpoints.watched_folder import Contents, WatchedFolder, worth_announcing
from trainhub_node.link.file_upload import FileUpload, UploadAbandoned
from trainhub_node.link.hub_client import HubClient, HubError, HubUnavailable, RequestRejected, TokenRejected
from trainhub_node.run_secrets import RunSecrets
from trainhub_node.rundir import RunDir

log = logging.getLogger(__name__)
SCAN_S = 2.0
# An entry without a sign is announced after so long a time without a change.
QUIET_S = 30.0
RETRY_S = 1.0
# For so long what the ranks have saved last is announced again and again, while the hub has no number for it.
FINISH_S = 120.0
# Threads of the agent that upload take the processor from no rank.
NICENESS = 10
# After so many failures for a reason that nobody has thought of, the hub is told not to wait any more.
MAX_FAILURES = 3


class CheckpointCollector(threading.Thread):
    """The thread that looks for new checkpoints, and the few that upload them."""

    def __init__(self, hub: HubClient, attempts: Attempts, secrets: RunSecrets) -> None:
        super().__init__(name="checkpoints", daemon=True)
        self._hub = hub
        self._attempts = attempts
        self._stores = CheckpointStores(hub, secrets, self._check)
        self._uploads = FileUpload(hub, attempts)
        self._threads = ThreadPoolExecutor(2, "checkpoint", initializer=_be_nice)
        self._watched: dict[Key, WatchedFolder] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()

    def run(self) -> None:
        while not self._closing.wait(SCAN_S):
            folders = {folder.key: folder for folder in self._attempts.all()}
            self._forget(self._watched.keys() - folders.keys())
            for folder in folders.values():
                try:
                    self._look(folder)
                except HubError as error:
                    # The next look announces them again, and the uplink logs that the hub is away.
                    log.debug("Checkpoints of run %s are announced later: %s", folder.run, error)
                except Exception:
                    log.exception("Checkpoints of run %s, attempt %d", folder.run, folder.attempt)

    def close(self) -> None:
        self._closing.set()
        self._uploads.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._forget(self._watched)

    def watch(self, folder: RunDir) -> None:
        """Begins to watch the folder of checkpoints of an attempt whose ranks are about to start."""
        watched = self._watch(folder)
        if watched is not None:
            with watched.lock:
                watched.renames.look()

    def collect(self, key: Key, number: int, name: str) -> None:
        """Delivers this node's part of a checkpoint, in a thread of its own. Repeated calls have no
        effect."""
        folder = self._attempts.get(key)
        watched = self._watch(folder) if folder is not None else None
        if watched is not None:
            self._submit(watched, number, name)

    def finish(self, folder: RunDir) -> None:
        """Delivers what the ranks, which have ended, have saved last. Raises UploadAbandoned."""
        watched = self._watch(folder)
        if watched is None:
            return
        until = time.monotonic() + FINISH_S
        while True:
            for name, number in self._until_answered(watched).items():
                if watched.take(number):
                    self._deliver(watched, number, name)
            while not self._closing.is_set() and watched.delivering:
                # What the collector's own threads have begun.
                time.sleep(0.05)
            # The hub takes an entry only once it has, or has given up, an earlier version of it.
            if not worth_announcing(watched.news(watched.entries())) or time.monotonic() > until:
                break
            self._closing.wait(RETRY_S)
        if watched.store is not None:
            self._remove_last_surplus(watched)

    def _remove_last_surplus(self, watched: WatchedFolder) -> None:
        """Removes from the store what the hub does not keep since the last checkpoint was complete."""
        try:
            self._announce(watched, [], names=[entry.name for entry in watched.entries()])
        except HubError as error:
            log.info("Surplus checkpoints of run %s stay where they are: %s", watched.folder.run, error)
        self._stores.remove_surplus(watched)

    def _check(self, folder: RunDir) -> None:
        """Raises UploadAbandoned."""
        if self._closing.is_set() or not self._attempts.is_tracked(folder.key):
            raise UploadAbandoned

    def _look(self, folder: RunDir) -> None:
        record = attempt_list.read_state(folder)
        if record is None or Phase.RUNNING not in record.get("phase_at", {}) or record.get("ended"):
            return
        watched = self._watch(folder)
        if watched is None:
            return
        now = time.time()
        with watched.lock:
            news = watched.news(watched.entries())
        ready = [entry for entry in news if entry.sign or now - entry.changed_at >= QUIET_S]
        if ready:
            for name, number in self._announce(watched, ready).items():
                self._submit(watched, number, name)
            if watched.surplus:
                self._threads.submit(self._stores.remove_surplus, watched)

    def _until_answered(self, watched: WatchedFolder) -> dict[str, int]:
        folder = watched.folder
        while True:
            with watched.lock:
                entries = watched.entries()
                news = watched.news(entries)
            if watched.is_alone and not entries:
                return {}  # no other node waits for the word that there is nothing
            try:
                return self._announce(watched, news, names=[entry.name for entry in entries])
            except RequestRejected as error:
                log.info("Checkpoints of run %s are not kept: %s", folder.run, error)
                return {}
            except HubError as error:
                log.info("Checkpoints of run %s wait for the hub: %s", folder.run, error)
                self._closing.wait(RETRY_S)
            self._check(folder)

    def _announce(
        self, watched: WatchedFolder, entries: Iterable[Entry], names: list[str] | None = None
    ) -> dict[str, int]:
        """Returns the number of each that the hub takes. `names`: all that is there, once no rank lives any
        more."""
        chosen = worth_announcing(entries)
        if not chosen and names is None:
            return {}
        folder = watched.folder
        body: dict[str, Any] = {
            "entries": [
                {
                    "name": entry.name,
                    "version": entry.version,
                    "sign": str(entry.sign),
                    "size": entry.size,
                    "wrong": entry.wrong,
                }
                for entry in chosen
            ]
        }
        if names is not None:
            body["names"] = [name for name in names if name.isprintable()]
        numbers, surplus = self._hub.announce_checkpoints(folder.run, folder.attempt, body)
        versions = {entry.name: entry.version for entry in chosen}
        with watched.lock:
            watched.surplus.update(surplus)
            watched.announced |= {name: versions[name] for name in numbers if name in versions}
            records.write(folder.checkpoints, {"announced": watched.announced})
        return numbers

    def _submit(self, watched: WatchedFolder, number: int, name: str) -> None:
        if watched.take(number):
            self._threads.submit(self._deliver, watched, number, name)

    def _deliver(self, watched: WatchedFolder, number: int, name: str) -> None:
        folder = watched.folder
        try:
            while not self._closing.is_set() and self._attempts.is_tracked(folder.key):
                try:
                    store = self._stores.open(watched)
                    contents = dict(watched.contents)
                    request = PartRequest(number, name, watched.is_alone, store, contents)
                    version = deliver_part(self._hub, self._uploads, folder, watched.place, request)
                    watched.note_delivery(number, name, version, contents)
                    return
                except (HubUnavailable, TokenRejected) as error:
                    log.info("A checkpoint of run %s waits for the hub: %s", folder.run, error)
                    self._closing.wait(RETRY_S)
        except UploadAbandoned:
            return
        except RequestRejected as error:
            log.info("Checkpoint %d of run %s is not kept: %s", number, folder.run, error)
            self._give_up(folder, number, str(error))
        except Exception as error:
            log.exception("Checkpoint %d of run %s", number, folder.run)
            watched.failures[number] += 1
            if watched.failures[number] >= MAX_FAILURES:
                self._give_up(folder, number, f"its agent failed ({type(error).__name__}), see its log")
        finally:
            with watched.lock:
                watched.delivering.discard(number)

    def _give_up(self, folder: RunDir, number: int, why: str) -> None:
        """Tells the hub, which would wait for it until the attempt ends."""
        with contextlib.suppress(HubError):
            self._hub.deliver_checkpoint_part(*folder.key, number, {"files": [], "torn": why})

    def _watch(self, folder: RunDir) -> WatchedFolder | None:
        """Returns what is known of the attempt; None if its hub keeps no checkpoints."""
        with self._lock:
            watched = self._watched.get(folder.key)
            if watched is None:
                order = records.read(folder.order) or {}
                if not order.get("checkpoint"):
                    return None
                checkpoint = CheckpointOrder.from_json(order["checkpoint"])
                place = checkpoint.folder
                announced = (records.read(folder.checkpoints) or {}).get("announced", {})
                watched = WatchedFolder(
                    folder,
                    place,
                    RenameWatch(folder.work, place),
                    dict(announced),
                    is_alone=order["go"],
                    store=checkpoint.store,
                    contents=_contents(checkpoint),
                )
                self._watched[folder.key] = watched
            return watched

    def _forget(self, keys: Iterable[Key]) -> None:
        with self._lock:
            for key in list(keys):
                if (watched := self._watched.pop(key, None)) is not None:
                    watched.renames.close()


def _contents(order: CheckpointOrder) -> Contents:
    """Returns what lies in the store already: an earlier attempt of the run has written it."""
    if order.source != order.store:
        return {}
    return {(file.size, file.sha256): file.key for file in order.stored_files}


def _be_nice() -> None:
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
