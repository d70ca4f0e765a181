"""The attempts that this node tracks. They are found in their folders, so that a restarted agent knows
them all."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trainhub_launch.json_types import JsonObject
from trainhub_node import proc, records
from trainhub_node.intake import ownership
from trainhub_node.isolation.network_rules import NetworkRules
from trainhub_node.machine import ports
from trainhub_node.machine.port_locks import PortLocks
from trainhub_node.run_account import Account
from trainhub_node.rundir import InvalidIdentifier, RunDir
from trainhub_node.settings import NodeSettings
from trainhub_node.untrusted import removal

log = logging.getLogger(__name__)
# Logs and records of settled attempts stay this long on the node, for people who look for the cause there.
RETENTION_S = 3 * 86400.0
# Key in `claim.json`: the ports that were free when the attempt became ready. The attempt keeps all of them
# until the final order names those that it uses.
READY_PORTS = "ready"

Key = tuple[str, int]


class Attempts:
    """The attempts that have an order and that the hub has not settled, and the ports reserved for them."""

    def __init__(self, settings: NodeSettings) -> None:
        self.has_tracked = False  # whether there ever was one
        self._settings = settings
        self._lock = threading.RLock()
        self._folders: dict[Key, RunDir] = {}
        self._ports: dict[Key, set[int]] = {}
        self._offered: set[int] = set()
        self._owners: dict[Key, int | None] = {}
        self._locks = PortLocks()
        self._rules = NetworkRules(settings.network) if settings.network is not None else None

    def scan(self) -> list[RunDir]:
        """Tracks the attempts on disk. Returns the folders whose claim has no answer yet.

        Anything else in the directory, and folders that another account made, are left alone."""
        unanswered = []
        for path in sorted(self._settings.attempts.iterdir()):
            try:
                folder = RunDir.at(str(path))
                ownership.require_folder(folder.path)
                if Path(folder.settled).exists():
                    continue
                is_claimed = ownership.has_order(folder)
            except InvalidIdentifier:
                log.warning("%s is not an attempt's folder; it is left alone", path)
                continue
            except ownership.ForeignFile as error:
                log.warning("%s; the attempt is left alone", error)
                continue
            if is_claimed:
                self._add(folder)
            else:
                unanswered.append(folder)
        # Once for all of them: a run of an earlier agent must not lose its ports for a moment.
        self._sync_rules()
        return unanswered

    def folder(self, run: str, attempt: int) -> RunDir:
        """Returns the folder of that attempt, which need not exist. Raises InvalidIdentifier."""
        return RunDir(str(self._settings.attempts), run, attempt)

    def track(self, folder: RunDir) -> None:
        self._add(folder)
        if self._ports[folder.key]:
            self._sync_rules()

    def _add(self, folder: RunDir) -> None:
        claim = records.read(folder.claim) or {}
        owner = read_owner(folder)
        with self._lock:
            self.has_tracked = True
            self._folders[folder.key] = folder
            self._ports[folder.key] = set(claim.get("held", ()))
            self._owners[folder.key] = owner
        self._sync_port_locks()

    def reserve_ports(self, folder: RunDir, claim: Mapping[str, Any]) -> None:
        """Writes `claim`, and reserves the ports under its key "held" for the attempt."""
        records.write(folder.claim, dict(claim))
        with self._lock:
            if folder.key in self._folders:
                self._ports[folder.key] = set(claim["held"])
        # Before another agent of the machine may take ports that are free now.
        self._sync_rules()
        self._sync_port_locks()

    def is_tracked(self, key: Key) -> bool:
        with self._lock:
            return key in self._folders

    def get(self, key: Key) -> RunDir | None:
        with self._lock:
            return self._folders.get(key)

    def all(self) -> list[RunDir]:
        with self._lock:
            return list(self._folders.values())

    @contextmanager
    def free_ports(self) -> Iterator[list[int]]:
        """Yields free ports that are reserved for the caller meanwhile.

        Afterwards, ports that no attempt has reserved are released for other agents of this machine. The
        caller ensures that only one thread uses this at a time."""
        offer = ports.find_free(self.reserved_ports(), acquire=self._locks.acquire)
        with self._lock:
            self._offered = set(offer)
        try:
            yield offer
        finally:
            with self._lock:
                self._offered = set()
            self._sync_port_locks()

    def _sync_port_locks(self) -> None:
        with self._lock:
            reserved = self.reserved_ports()
            self._locks.release_others(reserved | self._offered)
        for port in reserved:
            self._locks.acquire(port)

    def _sync_rules(self) -> None:
        """Has the ports of each attempt refused to other accounts."""
        if self._rules is None:
            return
        ports: dict[int, set[int]] = {}
        with self._lock:
            for key, own in self._ports.items():
                owner = self._owners[key]
                if owner is not None:
                    ports.setdefault(owner, set()).update(own)
        self._rules.set_ports(ports)

    def refresh_rules(self) -> None:
        """Makes the rules of the packet filter again if another program has removed them."""
        if self._rules is not None:
            self._rules.refresh()

    def close_ports(self, closed: Collection[int]) -> None:
        """Has these ports of the machine refused to all runs that do not have the agent's account."""
        if self._rules is not None:
            self._rules.close_ports(closed)

    def reserved_ports(self) -> set[int]:
        """Returns the ports reserved for attempts that are not settled."""
        with self._lock:
            return set().union(*self._ports.values())

    def close(self) -> None:
        """Releases all ports. The folders record what the attempts hold, for the next agent. Rules of the
        packet filter stay while attempts may live."""
        self._locks.close()
        if self._rules is not None and not self.all():
            self._rules.remove()

    def settle(self, key: Key) -> None:
        """Records that the hub has the whole outcome of the attempt, and stops tracking it."""
        folder = self.get(key)
        if folder is None:
            return
        # `patient=False`: on a full disk this raises instead of waiting, because the caller must go on with
        # the other attempts.
        records.write(folder.settled, {"at": time.time()}, patient=False)
        with self._lock:
            self._folders.pop(key, None)
            ports = self._ports.pop(key, None)
            self._owners.pop(key, None)
        if ports:
            self._sync_rules()
        self._sync_port_locks()

    def discard_old(self, *, now: float, retention_s: float) -> list[str]:
        """Deletes the folders of attempts settled more than `retention_s` ago. Returns their names."""
        removed = []
        for path in self._settings.attempts.iterdir():
            settled = path / "settled.json"
            if _belongs_to_agent(path) and settled.exists() and settled.stat().st_mtime < now - retention_s:
                try:
                    removal.remove_tree(str(path))
                except OSError:
                    log.exception("%s could not be deleted; the others are deleted anyway", path)
                else:
                    removed.append(path.name)
        return removed


def _belongs_to_agent(path: Path) -> bool:
    """Returns whether this is the folder of an attempt that this agent's account made."""
    try:
        ownership.require_folder(RunDir.at(str(path)).path)
    except (InvalidIdentifier, ownership.ForeignFile, FileNotFoundError):
        return False
    return True


def request_stop(
    folder: RunDir, reason: str, grace_s: float, *, error: str = "", error_kind: str = ""
) -> bool:
    """Writes the stop request, unless there is one: the first reason stays. Returns whether it is new.
    `error`: the sentence to report if the attempt failed by that, with its ErrorKind."""
    if Path(folder.stop).exists():
        return False
    request = {"why": reason, "grace_s": grace_s, "at": time.time()}
    cause = {"error": error, "error_kind": error_kind} if error else {}
    records.write(folder.stop, {**request, **cause}, patient=False)
    return True


def wake_child(folder: RunDir) -> None:
    """Makes the child read its folder now; it does so by itself within a second."""
    child = read_child(folder)
    if child is not None and proc.is_alive(child["pid"], child["identity"]):
        os.kill(child["pid"], signal.SIGUSR1)


def update_agent_record(folder: RunDir, *, phase: str = "", **facts: object) -> None:
    """Updates the agent's own record of the attempt (`agent.json`) atomically."""
    record = read_agent_record(folder) | facts
    if phase:
        record["phase_at"] = {phase: time.time(), **record["phase_at"]}
    records.write(folder.agent, record, patient=False)


def read_agent_record(folder: RunDir) -> dict[str, Any]:
    # Only the agent writes this file, and `state.json` only the child. So neither can overwrite what the
    # other has just written.
    return with_defaults(records.read(folder.agent))


def with_defaults(record: dict[str, object] | None) -> dict[str, Any]:
    return {"phase_at": {}, "error": "", "error_kind": "", "stopping": "", "warnings": [], **(record or {})}


def read_child(folder: RunDir) -> dict[str, Any] | None:
    record: dict[str, object] | None = records.read(folder.child)
    return record


def read_state(folder: RunDir) -> dict[str, Any] | None:
    record: JsonObject | None = records.read(folder.state)
    return record


def read_account(folder: RunDir) -> Account | None:
    """Returns the account of the attempt's ranks; None if it is the agent's own."""
    account = (records.read(folder.terms) or {}).get("account")
    return Account(**{name: account[name] for name in ("name", "uid", "gid", "home")}) if account else None


def read_owner(folder: RunDir) -> int | None:
    """Returns the user id of the attempt's ranks; None if it is the agent's own."""
    account = read_account(folder)
    return account.uid if account is not None else None


def as_sentence(error: object) -> str:
    return f"{str(error).rstrip('.')}."
