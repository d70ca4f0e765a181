"""Claims orders from the hub, and reserves the ports that they use.

`claim.json` holds the nonce of the claim, the ports offered with it ("ports"), those reserved for the
attempt ("held") and, once it is ready, those that were free then ("ready"). It is written before each
request, so that a restarted agent repeats the same claim."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from pathlib import Path

from trainhub_launch.order import NodeOrder
from trainhub_launch.states import ErrorKind, Phase
from trainhub_node import records
from trainhub_node.attempts import attempt_list
from trainhub_node.attempts.attempt_list import READY_PORTS, Attempts
from trainhub_node.backoff import Backoff
from trainhub_node.intake import ownership
from trainhub_node.isolation.number_ledger import NoFreeNumber, NumberLedger
from trainhub_node.launch import terms
from trainhub_node.launch.children import fail_attempt
from trainhub_node.launch.person_accounts import NoAccount
from trainhub_node.link.hub_client import HubClient, HubError, HubUnavailable, InvalidOrder
from trainhub_node.machine import ports
from trainhub_node.rundir import RunDir
from trainhub_node.settings import NodeSettings

log = logging.getLogger(__name__)
CLAIM_TIMEOUT_S = 60.0


class Claims:
    """The agent's claims; methods may be called from any thread. `closing` ends waiting for the hub.
    `numbers`: for nodes that give each attempt an account of its own."""

    def __init__(
        self,
        settings: NodeSettings,
        hub: HubClient,
        attempts: Attempts,
        closing: threading.Event,
        numbers: NumberLedger | None,
    ) -> None:
        self._numbers = numbers
        self._settings = settings
        self._hub = hub
        self._attempts = attempts
        self._closing = closing
        # One claim at a time: the next one must not offer the ports that this one is about to get.
        self._lock = threading.Lock()

    def claim(self, folder: RunDir) -> bool:
        """Claims the order and tracks the attempt. Returns False if the hub has none for this node.

        Raises InvalidOrder, and ForeignFile.
        """
        try:
            # Before the claim: an attempt that cannot have an account here may still get one elsewhere.
            number = self._numbers.take(folder.key) if self._numbers else None
        except NoFreeNumber as error:
            log.error("Run %s, attempt %d waits: %s", folder.run, folder.attempt, error)
            return False
        self._make_folder(folder.path)
        # Kept over retries: with the same nonce the hub knows that it is the same claim, whose answer was
        # lost, and answers it again.
        nonce = (records.read(folder.claim) or {}).get("nonce") or secrets.token_hex(16)
        with self._lock, self._attempts.free_ports() as offered:
            # On the disk before the request: the answer may be lost together with this process, and the next
            # agent repeats the claim with the same ports.
            records.write(folder.claim, {"nonce": nonce, "ports": offered})
            try:
                order = self._request_order(folder, nonce, offered)
            except InvalidOrder:
                self._drop(folder)
                raise
            except HubError as error:
                log.warning("Run %s, attempt %d is not ours: %s", folder.run, folder.attempt, error)
                # HubUnavailable leaves the claim on the disk: the hub may have accepted it, and the same
                # nonce repeats it.
                if not isinstance(error, HubUnavailable):
                    self._drop(folder)
                return False
            self._store(folder, order, nonce, offered, number)
        return True

    def claim_final(self, folder: RunDir) -> None:
        """Claims the final order, with which the processes may start. If the hub has none yet, nothing
        changes, and a later report's answer leads here again.

        Raises InvalidOrder."""
        claim = records.read(folder.claim)
        try:
            order = self._hub.claim(folder.run, folder.attempt, claim["nonce"], claim[READY_PORTS])
        except InvalidOrder:
            raise
        except HubError as error:
            log.info("Run %s, attempt %d may not start yet: %s", folder.run, folder.attempt, error)
            return
        if not order.go:
            return
        order_json = order.to_json()
        # Ports before the order: an agent killed in between keeps those that the order names.
        reserved = sorted(ports.used_ports(order_json["command"], claim[READY_PORTS]))
        # All ports of the offer are reserved until here, because any of them may be in the final order.
        self._attempts.reserve_ports(folder, {**claim, "held": reserved})
        records.write(folder.go, order_json)
        attempt_list.wake_child(folder)

    def reserve_ports(self, folder: RunDir) -> None:
        """Reserves the ports that are free now for an attempt that is ready, unless that is done."""
        with self._lock:
            claim = records.read(folder.claim)
            if READY_PORTS not in claim:
                with self._attempts.free_ports() as offer:
                    self._attempts.reserve_ports(folder, {**claim, READY_PORTS: offer, "held": offer})

    def _drop(self, folder: RunDir) -> None:
        ownership.remove_claim(folder)
        if self._numbers is not None:
            self._numbers.give_back(folder.key)

    def _store(
        self, folder: RunDir, order: NodeOrder, nonce: str, offered: list[int], number: int | None
    ) -> None:
        """Stores a claimed order and tracks the attempt. The order is written after the files that it needs,
        because a restarted agent tracks every attempt that has an order."""
        order_json = order.to_json()
        reserved = sorted(ports.used_ports(order_json["command"], offered)) if order.go else []
        records.write(folder.claim, {"nonce": nonce, "ports": offered, "held": reserved})
        for path in (folder.logs, folder.ranks):
            self._make_folder(path)
        attempt_list.update_agent_record(folder, phase=Phase.ACCEPTED)
        try:
            account = terms.attempt_account(self._settings, folder, number, order)
        except NoAccount as error:
            # Before the order, and without terms: whatever happens to this agent, nobody starts it.
            fail_attempt(folder, ErrorKind.LAUNCH, str(error))
        else:
            records.write(folder.terms, terms.build(self._settings, order, account))
        records.write(folder.order, order_json)
        self._attempts.track(folder)

    def _make_folder(self, path: str) -> None:
        """Makes a folder that ranks of another account may pass through, but not list. Raises ForeignFile."""
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
