"""Brings an attempt from a wake-up to a running child: claim the order, unpack the snapshot, start the child.

Every step leaves its file behind, so that after a crash the next agent continues from there.
"""

from __future__ import annotations

import logging
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from trainhub_launch.order import NodeOrder, OrderKind
from trainhub_launch.states import ErrorKind
from trainhub_node import records
from trainhub_node.attempts import attempt_list
from trainhub_node.attempts.attempt_list import READY_PORTS, Attempts, Key
from trainhub_node.backoff import Backoff
from trainhub_node.checkpoints import restore
from trainhub_node.data.manifests import fetch_manifests
from trainhub_node.intake import ownership, rejections
from trainhub_node.isolation.number_ledger import NumberLedger
from trainhub_node.launch import unpack
from trainhub_node.launch.cache import SnapshotCache
from trainhub_node.launch.children import fail_attempt, finish_before_start, forget_zombie, start_child
from trainhub_node.launch.claims import Claims
from trainhub_node.link.hub_client import HubClient, HubError, HubUnavailable, InvalidOrder
from trainhub_node.run_secrets import RunSecrets
from trainhub_node.rundir import RunDir
from trainhub_node.settings import NodeSettings
from trainhub_node.stores.store_files import StoreUnusable
from trainhub_node.untrusted import removal

log = logging.getLogger(__name__)
FAILURE_PAUSE_S = 1.0
# Attempts that may wait for a thread. Further ones are dropped: the answers to reports bring them again.
MAX_PENDING = 1000


class _Interrupted(Exception):
    """The attempt is to stop, or the agent ends."""


class Starter:
    """Runs one step of an attempt at a time, in threads of its own.

    `on_change` is called after each step, `request_report` when the hub wakes an attempt that is tracked,
    `before_start` once the files of an attempt are in place."""

    def __init__(
        self,
        settings: NodeSettings,
        hub: HubClient,
        attempts: Attempts,
        run_secrets: RunSecrets,
        *,
        on_change: Callable[[], None],
        request_report: Callable[[], None],
        before_start: Callable[[RunDir], None] = lambda _: None,
        numbers: NumberLedger | None = None,
    ) -> None:
        self._settings = settings
        self._attempts = attempts
        self._hub = hub
        self._secrets = run_secrets
        self._snapshots = SnapshotCache(settings, hub)
        self._on_change = on_change
        self._request_report = request_report
        self._before_start = before_start
        self._busy: set[Key] = set()
        self._postponed: set[Key] = set()
        self._rejected: set[Key] = set()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._claims = Claims(settings, hub, attempts, self._closing, numbers)
        self._threads = ThreadPoolExecutor(8, "claim")
        self._children: dict[Key, subprocess.Popen[bytes]] = {}

    def wake(self, run: str, attempt: int) -> None:
        """Starts or resumes the attempt. One that is tracked is also reported at once."""
        if self._attempts.is_tracked((run, attempt)):
            self._request_report()
        self.resume(run, attempt)

    def resume(self, run: str, attempt: int) -> None:
        """Starts the attempt, or claims the final order that it is waiting for.

        If a step of the attempt is running, this is repeated after that step, whose result decides what has
        to be done."""
        key = (run, attempt)
        with self._lock:
            if key in self._busy:
                self._postponed.add(key)
                return
        if key in self._rejected:
            return
        folder = self._attempts.get(key)
        if folder is None:
            self._submit(self._attempts.folder(run, attempt), self._claim_and_start, postpone=True)
        elif READY_PORTS in (records.read(folder.claim) or {}) and not Path(folder.go).exists():
            self._submit(folder, self._claim_final, postpone=True)

    def prepare(self, folder: RunDir) -> None:
        """Brings the attempt from any state to its child, in a thread of its own."""
        self._submit(folder, self._claim_and_start)

    def refetch_secrets(self, folder: RunDir) -> None:
        """Fetches the secrets of an attempt that an earlier agent started."""
        self._submit(folder, self._secrets.refetch)

    def reserve_ports(self, folder: RunDir) -> None:
        """Reserves the ports that are free now for an attempt that is ready."""
        self._submit(folder, self._claims.reserve_ports)

    def _submit(self, folder: RunDir, step: Callable[[RunDir], None], *, postpone: bool = False) -> None:
        """Submits a step, unless one of this attempt is running.

        `postpone`: if so, resume the attempt when that step has ended, because the hub sends a wake-up only
        once. Other callers repeat their call by themselves."""
        with self._lock:
            if self._closing.is_set():
                return  # the next agent gets it from the hub or from the folder
            if folder.key in self._busy:
                if postpone:
                    self._postponed.add(folder.key)
                return
            if len(self._busy) >= MAX_PENDING:
                rejections.reject("a wake-up", f"{MAX_PENDING} attempts wait to be claimed already")
                return
            self._busy.add(folder.key)
            self._threads.submit(self._run, folder, step)

    def check(self, folder: RunDir) -> None:
        """Handles an attempt without a child's record: prepares it again, or fails it if its child died at
        once."""
        with self._lock:
            child = self._children.get(folder.key)
            if folder.key in self._busy or (child is not None and child.poll() is None):
                return
        if child is None:
            self.prepare(folder)
        elif not Path(folder.child).exists():
            fail_attempt(
                folder,
                ErrorKind.INTERNAL,
                f"the process that was to supervise it ended at once with code {child.returncode}.",
            )

    def reap(self, folder: RunDir) -> None:
        """Waits for the attempt's child if this agent started it, or an earlier one in this process; a child
        that has ended stays a zombie until then."""
        with self._lock:
            child = self._children.pop(folder.key, None)
        if child is not None:
            child.wait()
        elif record := records.read(folder.child):
            forget_zombie(record["pid"], record["identity"])

    def close(self) -> None:
        with self._lock:
            self._closing.set()
            self._threads.shutdown(wait=False, cancel_futures=True)

    def _run(self, folder: RunDir, step: Callable[[RunDir], None]) -> None:
        try:
            # The hub may have settled the attempt while it waited for a thread.
            if not Path(folder.settled).exists():
                step(folder)
        except Exception:
            log.exception("Attempt %s of run %s could not be started", folder.attempt, folder.run)
            self._closing.wait(FAILURE_PAUSE_S)
            if self._attempts.is_tracked(folder.key) and not Path(folder.child).exists():
                fail_attempt(
                    folder,
                    ErrorKind.INTERNAL,
                    "the agent failed while preparing it; its own log has the traceback.",
                )
        finally:
            with self._lock:
                self._busy.discard(folder.key)
                is_postponed = folder.key in self._postponed
                self._postponed.discard(folder.key)
            self._on_change()
            if is_postponed and not self._closing.is_set():
                self.resume(*folder.key)

    def _claim_and_start(self, folder: RunDir) -> None:
        try:
            is_claimed = ownership.has_order(folder) or self._claims.claim(folder)
        except (ownership.ForeignFile, InvalidOrder) as error:
            self._reject(folder, str(error))
            return
        if is_claimed:
            self._start(folder)

    def _claim_final(self, folder: RunDir) -> None:
        try:
            self._claims.claim_final(folder)
        except InvalidOrder as error:
            self._reject(folder, str(error))

    def _reject(self, folder: RunDir, reason: str) -> None:
        """Ignores this attempt until the agent restarts."""
        self._rejected.add(folder.key)
        log.error("Run %s, attempt %d is not taken up: %s", folder.run, folder.attempt, reason)

    def _start(self, folder: RunDir) -> None:
        if Path(folder.child).exists() or "over_at" in attempt_list.read_agent_record(folder):
            return
        order = NodeOrder.from_json(records.read(folder.order))
        if order.kind == OrderKind.RUN and not Path(folder.work).exists():
            read, unpack_source = (
                partial(step, folder, order) for step in (self._read_checkpoint, self._unpack)
            )
            if not self._until_available(folder, ErrorKind.DATA, read):
                return
            if not self._until_available(folder, ErrorKind.SNAPSHOT, unpack_source):
                return
        if not self._until_available(
            folder, ErrorKind.DATA, lambda: fetch_manifests(self._hub, folder, order)
        ):
            return
        if not self._until_available(folder, ErrorKind.LAUNCH, lambda: self._secrets.fetch(folder)):
            return
        if Path(folder.stop).exists():
            finish_before_start(folder)
            return
        self._before_start(folder)
        child = start_child(folder, self._secrets.fetch(folder))
        with self._lock:
            self._children[folder.key] = child

    def _read_checkpoint(self, folder: RunDir, order: NodeOrder) -> None:
        """Raises HubError, StoreUnusable and _Interrupted."""
        checkpoint = order.checkpoint
        if checkpoint is not None and checkpoint.source is not None:
            secret = self._secrets.fetch(folder).get(checkpoint.source.secret_key, "")
            restore.read_from_store(folder, checkpoint, secret, lambda: self._check(folder))

    def _check(self, folder: RunDir) -> None:
        if self._closing.is_set() or Path(folder.stop).exists():
            raise _Interrupted

    def _unpack(self, folder: RunDir, order: NodeOrder) -> None:
        archive = self._snapshots.fetch(order.snapshot)
        account, checkpoint = attempt_list.read_account(folder), order.checkpoint
        if checkpoint is None:
            unpack.unpack_snapshot(archive, Path(folder.work), account)
            return
        restore.download(self._hub, folder, checkpoint, lambda: self._check(folder))
        unpack.unpack_snapshot(
            archive,
            Path(folder.work),
            account,
            add=lambda work: restore.put_in_place(folder, checkpoint, work, account),
        )
        removal.remove_tree(folder.restored)

    def _until_available(self, folder: RunDir, kind: ErrorKind, step: Callable[[], object]) -> bool:
        """Repeats a step that needs the hub until the hub answers. Returns False if the attempt ends here."""
        backoff = Backoff(max_s=5.0)
        while not Path(folder.stop).exists():
            if self._closing.is_set():
                return False
            try:
                step()
                return True
            except HubUnavailable as error:
                log.info("Run %s waits for the hub (%s): %s", folder.run, kind, error)
                self._closing.wait(backoff.next_s())
            except _Interrupted:
                continue
            except (HubError, unpack.BadSnapshot, StoreUnusable) as error:
                fail_attempt(folder, kind, attempt_list.as_sentence(error))
                return False
            except OSError as error:
                fail_attempt(folder, kind, f"{error.strerror or error} ({error.filename or folder.work}).")
                return False
        finish_before_start(folder)
        return False
