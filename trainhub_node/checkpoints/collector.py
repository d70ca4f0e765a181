"""Watches the folders of checkpoints of running attempts, and delivers what the hub takes, beside the run: no
rank ever waits for it."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from trainhub_launch.order import CheckpointOrder
from trainhub_launch.states import CheckpointSign, Phase
from trainhub_node import records
from trainhub_node.attempts import attempt_list
from trainhub_node.attempts.attempt_list import Attempts, Key
from trainhub_node.checkpoints.entries import Entry, list_entries
from trainhub_node.checkpoints.part_delivery import PartRequest, deliver_part
from trainhub_node.checkpoints.renames import RenameWatch
from trainhub_node.link.file_upload import FileUpload, UploadAbandoned
from trainhub_node.link.hub_client import HubClient, HubError, HubUnavailable, RequestRejected, TokenRejected
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
# The number of what the hub does not keep, though it was announced.
REFUSED = 0


@dataclass
class _Watched:
    """An attempt with a folder of checkpoints. `announced`: name -> version that the hub took, or that was
    there before the ranks started. `is_alone`: it is the run's only node. `delivering`: numbers that wait for
    a thread or have one; `delivered`: those that this agent has delivered; `failures`: how often delivering
    each has failed for a reason that nobody has thought of."""

    folder: RunDir
    place: str
    renames: RenameWatch
    announced: dict[str, str]
    is_alone: bool
    delivering: set[int] = field(default_factory=set)
    delivered: set[int] = field(default_factory=set)
    failures: Counter[int] = field(default_factory=Counter)
    # One scan at a time: the thread of the collector, and the one that finishes the attempt.
    lock: threading.Lock = field(default_factory=threading.Lock)

    def entries(self) -> list[Entry]:
        self.renames.look()
        return list_entries(self.folder.work, self.place, self.renames.renames)

    def news(self, entries: Iterable[Entry]) -> list[Entry]:
        return [entry for entry in entries if self.announced.get(entry.name) != entry.version]

    def take(self, number: int) -> bool:
        """Returns whether the caller is the one who delivers that checkpoint."""
        with self.lock:
            if number == REFUSED or number in self.delivering or number in self.delivered:
                return False
            self.delivering.add(number)
            return True


class CheckpointCollector(threading.Thread):
    """The thread that looks for new checkpoints, and the few that upload them."""

    def __init__(self, hub: HubClient, attempts: Attempts) -> None:
        super().__init__(name="checkpoints", daemon=True)
        self._hub = hub
        self._attempts = attempts
        self._uploads = FileUpload(hub, attempts)
        self._threads = ThreadPoolExecutor(2, "checkpoint", initializer=_be_nice)
        self._watched: dict[Key, _Watched] = {}
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
            if not _newest(watched.news(watched.entries())) or time.monotonic() > until:
                return
            self._closing.wait(RETRY_S)

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

    def _until_answered(self, watched: _Watched) -> dict[str, int]:
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
            if self._closing.is_set() or not self._attempts.is_tracked(folder.key):
                raise UploadAbandoned

    def _announce(
        self, watched: _Watched, entries: Iterable[Entry], names: list[str] | None = None
    ) -> dict[str, int]:
        """Returns the number of each that the hub takes. `names`: all that is there, once no rank lives any
        more."""
        chosen = _newest(entries)
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
        numbers = self._hub.announce_checkpoints(folder.run, folder.attempt, body)
        versions = {entry.name: entry.version for entry in chosen}
        with watched.lock:
            watched.announced |= {name: versions[name] for name in numbers if name in versions}
            records.write(folder.checkpoints, {"announced": watched.announced})
        return numbers

    def _submit(self, watched: _Watched, number: int, name: str) -> None:
        if watched.take(number):
            self._threads.submit(self._deliver, watched, number, name)

    def _deliver(self, watched: _Watched, number: int, name: str) -> None:
        folder = watched.folder
        try:
            while not self._closing.is_set() and self._attempts.is_tracked(folder.key):
                try:
                    request = PartRequest(number, name, is_whole=watched.is_alone)
                    deliver_part(self._hub, self._uploads, folder, watched.place, request)
                    watched.delivered.add(number)
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

    def _watch(self, folder: RunDir) -> _Watched | None:
        """Returns what is known of the attempt; None if its hub keeps no checkpoints."""
        with self._lock:
            watched = self._watched.get(folder.key)
            if watched is None:
                order = records.read(folder.order) or {}
                if not order.get("checkpoint"):
                    return None
                place = CheckpointOrder.from_json(order["checkpoint"]).folder
                announced = (records.read(folder.checkpoints) or {}).get("announced", {})
                watched = _Watched(
                    folder, place, RenameWatch(folder.work, place), dict(announced), order["go"]
                )
                self._watched[folder.key] = watched
            return watched

    def _forget(self, keys: Iterable[Key]) -> None:
        with self._lock:
            for key in list(keys):
                if (watched := self._watched.pop(key, None)) is not None:
                    watched.renames.close()


def _newest(entries: Iterable[Entry]) -> list[Entry]:
    """Returns the newest entry, and of the others the newest that are complete by a sign: what a script has
    written before it learned to mark its checkpoints is not worth the upload of all of it."""
    ordered = list(entries)
    signed = [entry for entry in ordered if entry.sign is not CheckpointSign.NONE][-3:]
    return signed if not ordered or ordered[-1] in signed else [*signed, ordered[-1]]


def _be_nice() -> None:
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
