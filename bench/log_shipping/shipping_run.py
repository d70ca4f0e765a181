"""A run with a large log in a database of its own, to be shipped by this process. To be imported only when
DATA_DIR is set."""

from __future__ import annotations

import time
from pathlib import Path

import django

django.setup()

from django.conf import settings  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.utils import timezone  # noqa: E402

from clusters.models import Cluster, Node  # noqa: E402
from jobs.log_shipping import destinations, rounds  # noqa: E402
from jobs.log_shipping.destinations import Destination  # noqa: E402
from jobs.logs import log_store, log_timestamps  # noqa: E402
from jobs.models import Attempt, Experiment, LogTarget, Run  # noqa: E402
from workspaces.models import Workspace  # noqa: E402

NAME = "70_driver_log.txt"
# As a node sends them: what a rank has written since the report before.
CHUNK_BYTES = 256 * 1024


class ShippingRun:
    """`log`: the file of its log; `lines`: how many it has."""

    def __init__(self, text: bytes) -> None:
        call_command("migrate", verbosity=0)
        workspace, _ = Workspace.objects.get_or_create(slug="default", defaults={"name": "Default"})
        experiment = Experiment.objects.create(workspace=workspace, name="bench")
        run = Run.objects.create(workspace=workspace, experiment=experiment, number=1, display_name="bench")
        self._attempt = Attempt.objects.create(run=run, number=1, placement=[])
        cluster, _ = Cluster.objects.get_or_create(name="bench")
        node = Node.objects.create(cluster=cluster, name="bench")
        self._attempt.members.create(node=node, rank=0, local_rank=0, log_name=NAME)
        self._attempt.parts.create(node=node, node_rank=0)
        now_ms = int(time.time() * 1000)
        for number, begin in enumerate(range(0, len(text), CHUNK_BYTES)):
            chunk = text[begin : begin + CHUNK_BYTES]
            log_store.append(run.pk, 1, NAME, begin, chunk)
            log_timestamps.record_arrival((run.pk, 1, NAME), begin, begin + len(chunk), now_ms + 500 * number)
        log_timestamps.flush_attempt(run.pk, 1)
        self.log: Path = log_store.path(run.pk, 1, NAME)
        self.lines = text.count(b"\n")

    def ship(self, kind: str, url: str) -> tuple[float, float]:
        """Ships the whole log and returns the seconds of CPU and of time that it took."""
        LogTarget.objects.all().delete()
        settings.LOG_DESTINATION = Destination(kind, destinations.parse_url(kind, url))
        now = timezone.now()
        LogTarget.objects.create(kind=kind, since=self._attempt.created_at, try_at=now, url=url)
        began, began_s = time.monotonic(), time.process_time()
        while (target := LogTarget.objects.get()).lines < self.lines:
            if target.failures:
                raise RuntimeError(target.last_error)
            rounds.ship_due()
        return time.process_time() - began_s, time.monotonic() - began
