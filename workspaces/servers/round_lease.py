"""Lets one worker of all run the periodic tasks: a row that it renews, by the database's clock."""

from __future__ import annotations

import logging
import threading
import time
from datetime import timedelta

from django.db import DatabaseError, IntegrityError, InterfaceError, connections
from django.db.models import Q
from django.db.models.functions import Now

from workspaces.servers import server_registry
from workspaces.servers.membership import is_punctual
from workspaces.servers.models import RoundLease

log = logging.getLogger(__name__)
# The lease of the worker that runs the periodic tasks.
PERIODIC_TASKS = "periodic-tasks"
LEASE_S = 6.0
RENEW_EVERY_S = 1.5
# The holder stops so much earlier than others may begin.
MARGIN_S = 1.0


def take_lease(name: str, holder: str, seconds: float = LEASE_S) -> bool:
    """Takes or renews the lease. Returns False if somebody else holds it."""
    free = Q(holder=holder) | Q(until__lte=Now())
    until = Now() + timedelta(seconds=seconds)
    if RoundLease.objects.filter(free, name=name).update(holder=holder, until=until):
        return True
    try:
        _, is_new = RoundLease.objects.get_or_create(name=name, defaults={"holder": holder, "until": until})
    except IntegrityError:  # somebody else was first
        return False
    return is_new


def free_lease(name: str, holder: str) -> None:
    RoundLease.objects.filter(name=name, holder=holder).update(until=Now())


def own_holder() -> str:
    """Returns what stands for this worker in leases. A worker that was killed goes on where it was, without
    waiting for its own lease to end: one worker of a name runs on a machine at a time."""
    return f"{server_registry.own_name()}:{server_registry.own_machine()}"


class LeaseKeeper(threading.Thread):
    """Tries to hold one lease for as long as this process lives. `is_ours` asks nobody."""

    def __init__(self, name: str) -> None:
        super().__init__(name=f"lease-{name}", daemon=True)
        self._lease = name
        self._holder = own_holder()
        self._ends_at = float("-inf")
        self._closing = threading.Event()

    @property
    def is_ours(self) -> bool:
        return time.monotonic() < self._ends_at

    def run(self) -> None:
        try:
            while not self._closing.is_set():
                self.renew_once()
                self._closing.wait(RENEW_EVERY_S)
        finally:
            connections.close_all()

    def close(self) -> None:
        """Renews the lease no more. It is left to end by itself: what it protects may not have ended yet."""
        self._closing.set()

    def renew_once(self) -> None:
        started = time.monotonic()
        was_ours = self.is_ours
        try:
            if not is_punctual(server_registry.clock_offset_s()):
                # Others take over; until somebody does, nobody runs them: wrong times would end runs.
                return
            if take_lease(self._lease, self._holder):
                self._ends_at = started + LEASE_S - MARGIN_S
                if not was_ours:
                    log.info("This worker runs the periodic tasks from now on")
        except (DatabaseError, InterfaceError) as error:
            connections.close_all()
            if was_ours:
                log.warning("The lease %s cannot be renewed: %s", self._lease, error)
