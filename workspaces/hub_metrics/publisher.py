"""Stores the measurements of this process in the database, where every web server can read them."""

from __future__ import annotations

import logging
import os
import resource
import socket
import time
from collections import deque
from datetime import timedelta
from pathlib import Path

from django.db import DatabaseError
from django.utils import timezone

from workspaces.database.outages import refuse_if_away
from workspaces.hub_metrics import snapshots
from workspaces.hub_metrics.instruments import CPU_SECONDS, MEMORY_BYTES, OPEN_FILES, REGISTRY
from workspaces.hub_metrics.models import HubProcess
from workspaces.hub_metrics.snapshots import Snapshot

log = logging.getLogger(__name__)
INTERVAL_S = 10.0
# What the page shows happened within this time.
WINDOW_S = 300.0
# A process that has not stored anything for so long has ended, or hangs.
SILENT_AFTER = timedelta(seconds=4 * INTERVAL_S)
# Shown as silent until then, so that somebody notices.
FORGOTTEN_AFTER = timedelta(hours=1)


class Publisher:
    """Stores the measurements of this process when they are due. `kind`: web or worker. `version`: that of
    TrainHub."""

    def __init__(self, kind: str, version: str) -> None:
        self._kind = kind
        self._version = version
        self._name = f"{kind}@{socket.gethostname()}:{os.getpid()}"
        self._started_at = timezone.now()
        self._due = time.monotonic()
        self._past: deque[tuple[float, Snapshot]] = deque()
        self._cpu_s = 0.0

    def publish_due(self) -> None:
        """Does nothing until the next time is due, so it may be called often."""
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + INTERVAL_S
            self.publish()

    def publish(self) -> None:
        """Raises DatabaseError; then nothing is stored."""
        self._measure_process()
        self._store(time.monotonic(), snapshots.take_snapshot(REGISTRY))

    def withdraw(self) -> None:
        """Removes this process from the table, because it ends. Where the database cannot be reached, the
        process is shown as silent for an hour instead."""
        try:
            # A server that ends must not wait for a connection.
            refuse_if_away()
            HubProcess.objects.filter(name=self._name).delete()
        except DatabaseError as error:
            log.warning("The page System will show this process as silent: %s", error)

    def _store(self, now_s: float, snapshot: Snapshot) -> None:
        self._past.append((now_s, snapshot))
        while now_s - self._past[0][0] > WINDOW_S:
            self._past.popleft()
        earlier_at, earlier = self._past[0]
        now = timezone.now()
        HubProcess.objects.update_or_create(
            name=self._name,
            defaults={
                "kind": self._kind,
                "version": self._version,
                "started_at": self._started_at,
                "measured_at": now,
                "measured": snapshots.snapshot_to_json(snapshot),
                "earlier": snapshots.snapshot_to_json(earlier),
                "earlier_s": now_s - earlier_at,
            },
        )
        HubProcess.objects.filter(measured_at__lt=now - FORGOTTEN_AFTER).delete()

    def _measure_process(self) -> None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        cpu_s = used.ru_utime + used.ru_stime
        CPU_SECONDS.inc(cpu_s - self._cpu_s)
        self._cpu_s = cpu_s
        statm = Path("/proc/self/statm")
        if statm.exists():
            MEMORY_BYTES.set(int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
            OPEN_FILES.set(len(list(Path("/proc/self/fd").iterdir())))
