"""From a wake-up to a running child: claim the order, fetch and unpack the snapshot, start the child.

Every step leaves its file behind, so that whoever comes after a crash goes on from there.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import secrets
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from trainhub_launch.order import NodeOrder
from trainhub_node import records
from trainhub_node.attempts import attempt_list
from trainhub_node.attempts.attempt_list import READY_PORTS, Attempts, Key
from trainhub_node.backoff import Backoff
from trainhub_node.intake import ownership, rejections
from trainhub_node.launch import unpack, wrapper
from trainhub_node.launch.cache import SnapshotCache
from trainhub_node.link.hub_client import HubClient, HubError, HubUnavailable, InvalidOrder
from trainhub_node.machine import ports
from trainhub_node.rundir import RunDir
from trainhub_node.settings import NodeSettings
from trainhub_node.supervisor.variables import BASE

log = logging.getLogger(__name__)
CLAIM_TIMEOUT_S = 60.0
FAILURE_PAUSE_S = 1.0
MAX_PENDING = 1000
"""Attempts that wait for a thread. What comes beyond is dropped: the answers to reports bring it again."""
PIP_PREFIX = "PIP_"
PIP_NAMES = (
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
)


class Starter:
    """`changed` is called whenever there is news of an attempt, `report` when the hub asks for a word of
    it."""

    def __init__(
        self,
        settings: NodeSettings,
        hub: HubClient,
        attempts: Attempts,
        *,
        on_change: Callable[[], None],
        request_report: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._hub = hub
        self._attempts = attempts
        self._snapshots = SnapshotCache(settings, hub)
        self._on_change = on_change
        self._request_report = request_report
        self._claim_lock = threading.Lock()
        self._busy: set[Key] = set()
        self._rejected: set[Key] = set()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._threads = ThreadPoolExecutor(8, "claim")
        self._children: dict[Key, subprocess.Popen[bytes]] = {}

    def wake(self, run: str, attempt: int) -> None:
        """Something is to be done about this attempt: start it, go on with it, or tell the hub of it at
        once."""
        if self._attempts.is_tracked((run, attempt)):
            self._request_report()
        self.resume(run, attempt)

    def resume(self, run: str, attempt: int) -> None:
        """Start it, or fetch the final order that it is waiting for."""
        folder = self._attempts.get((run, attempt))
        if (run, attempt) in self._rejected:
            return
        if folder is None:
            self.prepare(self._attempts.folder(run, attempt))
        elif READY_PORTS in (records.read(folder.claim) or {}) and not Path(folder.go).exists():
            self._submit(folder, self._claim_final)

    def prepare(self, folder: RunDir) -> None:
        """Bring the attempt to its child from wherever it stands, in a thread of its own."""
        self._submit(folder, self._claim_and_start)

    def reserve_ports(self, folder: RunDir) -> None:
        """The attempt is ready: find out which ports are free now, and keep them for it."""
        self._submit(folder, self._reserve_ports)

    def _submit(self, folder: RunDir, step: Callable[[RunDir], None]) -> None:
        """One step of an attempt at a time; one that is asked for meanwhile is asked for again."""
        with self._lock:
            if folder.key in self._busy:
                return
            if len(self._busy) >= MAX_PENDING:
                rejections.reject("a wake-up", f"{MAX_PENDING} attempts wait to be claimed already")
                return
            self._busy.add(folder.key)
        self._threads.submit(self._run, folder, step)

    def check(self, folder: RunDir) -> None:
        """An attempt without a child's record: it is being prepared, or preparing it failed, or its child
        died at birth."""
        with self._lock:
            child = self._children.get(folder.key)
            if folder.key in self._busy or (child is not None and child.poll() is None):
                return
        if child is None:
            self.prepare(folder)
        elif not Path(folder.child).exists():
            fail(
                folder,
                "internal",
                f"the process that was to supervise it ended at once with code {child.returncode}.",
            )

    def reap(self, folder: RunDir) -> None:
        """Our own child has ended, and is a zombie until asked how."""
        with self._lock:
            child = self._children.pop(folder.key, None)
        if child is not None:
            child.wait()

    def close(self) -> None:
        self._closing.set()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _run(self, folder: RunDir, step: Callable[[RunDir], None]) -> None:
        try:
            if not Path(folder.settled).exists():
                step(folder)
        except Exception:
            log.exception("Attempt %s of run %s could not be started", folder.attempt, folder.run)
            self._closing.wait(FAILURE_PAUSE_S)
            if self._attempts.is_tracked(folder.key) and not Path(folder.child).exists():
                fail(
                    folder, "internal", "the agent failed while preparing it; its own log has the traceback."
                )
        finally:
            with self._lock:
                self._busy.discard(folder.key)
            self._on_change()

    def _claim_and_start(self, folder: RunDir) -> None:
        try:
            is_claimed = ownership.has_order(folder) or self._claim(folder)
        except ownership.ForeignFile as error:
            self._reject(folder, str(error))
            return
        if is_claimed:
            self._start(folder)

    def _reject(self, folder: RunDir, reason: str) -> None:
        """Have nothing more to do with this attempt as long as this agent lives."""
        self._rejected.add(folder.key)
        log.error("Run %s, attempt %d is not taken up: %s", folder.run, folder.attempt, reason)

    def _reserve_ports(self, folder: RunDir) -> None:
        with self._claim_lock:
            claim = records.read(folder.claim)
            if READY_PORTS not in claim:
                with self._attempts.free_ports() as offer:
                    self._attempts.reserve_ports(folder, {**claim, READY_PORTS: offer, "held": offer})

    def _claim_final(self, folder: RunDir) -> None:
        """Ask for the order with which the processes may start. While there is none, the hub offers it
        again."""
        claim = records.read(folder.claim)
        try:
            order = self._hub.claim(folder.run, folder.attempt, claim["nonce"], claim[READY_PORTS])
        except InvalidOrder as error:
            self._reject(folder, str(error))
            return
        except HubError as error:
            log.info("Run %s, attempt %d may not start yet: %s", folder.run, folder.attempt, error)
            return
        if not order.go:
            return
        order_json = order.to_json()
        # Ports before the order: whoever is killed in between keeps those that it names.
        reserved = sorted(ports.used_ports(order_json["command"], claim[READY_PORTS]))
        self._attempts.reserve_ports(folder, {**claim, "held": reserved})
        records.write(folder.go, order_json)
        attempt_list.wake_child(folder)

    def _claim(self, folder: RunDir) -> bool:
        """Ask for the order; False when the hub has none for us."""
        self._make_folder(folder.path)
        nonce = (records.read(folder.claim) or {}).get("nonce") or secrets.token_hex(16)
        # One claim at a time: the next one must not be offered the ports that this one is about to get.
        with self._claim_lock, self._attempts.free_ports() as offered:
            records.write(folder.claim, {"nonce": nonce, "ports": offered})
            try:
                order = self._request_order(folder, nonce, offered)
            except InvalidOrder as error:
                ownership.remove_claim(folder)
                self._reject(folder, str(error))
                return False
            except HubError as error:
                log.warning("Run %s, attempt %d is not ours: %s", folder.run, folder.attempt, error)
                if not isinstance(error, HubUnavailable):
                    ownership.remove_claim(folder)
                return False
            order_json = order.to_json()
            reserved = sorted(ports.used_ports(order_json["command"], offered)) if order.go else []
            records.write(folder.claim, {"nonce": nonce, "ports": offered, "held": reserved})
            for path in (folder.logs, folder.ranks):
                self._make_folder(path)
            records.write(folder.terms, self._terms(order))
            records.write(folder.order, order_json)
            attempt_list.update_agent_record(folder, phase="accepted")
            self._attempts.track(folder)
        return True

    def _make_folder(self, path: str) -> None:
        """A folder of ours that ranks of another account may pass through. Raises ForeignFile."""
        Path(path).mkdir(exist_ok=True)
        ownership.require_folder(path)
        Path(path).chmod(0o711 if self._settings.run_as else 0o700)

    def _request_order(self, folder: RunDir, nonce: str, offered: list[int]) -> NodeOrder:
        backoff = Backoff(max_s=2.0)
        deadline = time.monotonic() + CLAIM_TIMEOUT_S
        while True:
            try:
                return self._hub.claim(folder.run, folder.attempt, nonce, offered)
            except HubUnavailable:
                # The hub offers unclaimed attempts with every report, so giving up loses nothing.
                if time.monotonic() > deadline or self._closing.is_set():
                    raise
            self._closing.wait(backoff.next_s())

    def _terms(self, order: NodeOrder) -> dict[str, object]:
        """What the child must know of this node, so that it needs neither settings nor the agent."""
        settings = self._settings
        pip = {
            name: value
            for name, value in os.environ.items()
            if name.startswith(PIP_PREFIX) or name in PIP_NAMES
        }
        return {
            "node": settings.name,
            "python": settings.python,
            "sites": str(settings.sites),
            "environments": str(settings.environments),
            "digest": order.environment.digest,
            "pip": pip,
            "account": dataclasses.asdict(settings.run_as) if settings.run_as else None,
            "wrapper": wrapper.argv(settings),
            "ca": str(settings.rank_ca) if settings.hub_ca else "",
        }

    def _start(self, folder: RunDir) -> None:
        if Path(folder.child).exists() or "over_at" in attempt_list.read_agent_record(folder):
            return
        order = NodeOrder.from_json(records.read(folder.order))
        if not Path(folder.work).exists() and not self._unpack(folder, order):
            return
        if Path(folder.stop).exists():
            finish_before_start(folder)
            return
        child = start_child(folder)
        with self._lock:
            self._children[folder.key] = child

    def _unpack(self, folder: RunDir, order: NodeOrder) -> bool:
        """The working folder; False when the attempt ends here."""
        backoff = Backoff(max_s=5.0)
        while not Path(folder.stop).exists():
            if self._closing.is_set():
                return False
            try:
                archive = self._snapshots.fetch(order.snapshot)
                unpack.unpack(archive, Path(folder.work), self._settings.run_as)
                return True
            except HubUnavailable as error:
                log.info("Waiting for the snapshot of run %s: %s", folder.run, error)
                self._closing.wait(backoff.next_s())
            except (HubError, unpack.BadSnapshot) as error:
                fail(folder, "snapshot", attempt_list.as_sentence(error))
                return False
            except OSError as error:
                fail(folder, "snapshot", f"{error.strerror or error} ({error.filename or folder.work}).")
                return False
        finish_before_start(folder)
        return False


def start_child(folder: RunDir) -> subprocess.Popen[bytes]:
    """The detached process that carries the attempt from here on. It marks itself, for whoever must find
    it."""
    env = {name: os.environ[name] for name in BASE if name in os.environ}
    env |= {"TRAINHUB_RUN_ID": folder.run, "TRAINHUB_ATTEMPT": str(folder.attempt)}
    with Path(folder.child_log).open("ab") as log_file:
        return subprocess.Popen(
            [*wrapper.AGENT_WRAPPER, "child", folder.path],
            stdin=subprocess.DEVNULL,
            stdout=log_file,
            stderr=log_file,
            cwd="/",
            env=env,
            start_new_session=True,
        )


def fail(folder: RunDir, kind: str, sentence: str) -> None:
    """The attempt ends before it had a child."""
    attempt_list.update_agent_record(
        folder, phase="done", error=sentence, error_kind=kind, over_at=time.time()
    )


def finish_before_start(folder: RunDir) -> None:
    """Stopped before it had a child."""
    reason = (records.read(folder.stop) or {}).get("why", "canceled")
    attempt_list.update_agent_record(folder, phase="done", stopping=reason, over_at=time.time())
