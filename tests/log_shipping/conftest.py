from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from jobs.log_shipping import rounds
from jobs.log_shipping.destinations import Destination, parse_url
from jobs.log_shipping.models import LogTarget
from jobs.logs import log_store
from jobs.models import Run
from tests.jobs import builders
from tests.log_shipping.receiver import LogReceiver, listening
from tests.people import make_contributor, principal_of
from workspaces import process_caches


@pytest.fixture
def receiver() -> Iterator[LogReceiver]:
    with listening() as server:
        yield server


class Shipping:
    """The hub's log system, and a run whose log grows as the test says."""

    def __init__(self, receiver: LogReceiver, settings: Any) -> None:
        self._receiver, self._settings = receiver, settings
        self.kind("otlp")
        rounds.ship_due()  # switched on: attempts from now on
        self.played, self.run = builders.running(principal_of(make_contributor()))

    def kind(self, kind: str, **changes: Any) -> None:
        destination = Destination(kind, parse_url(kind, self._receiver.url), max_line_bytes=65536)
        self._settings.LOG_DESTINATION = replace(destination, **changes)

    def say(self, text: str | bytes, name: str = "70_driver_log.txt") -> None:
        offset = log_store.size(self.run.pk, 1, name)
        self.played.log(self.run, name, offset, text if isinstance(text, bytes) else text.encode())

    def ship(self) -> LogTarget:
        """One round, however long the pause after a failure is."""
        LogTarget.objects.update(try_at="2020-01-01T00:00Z")
        rounds.ship_due()
        return self.target

    @property
    def target(self) -> LogTarget:
        return LogTarget.objects.get(workspace=None)

    def end(self) -> Run:
        self.played.finish(self.run)
        self.run.refresh_from_db()
        return self.run


@pytest.fixture
def shipping(receiver: LogReceiver, settings: Any, db: None) -> Shipping:
    process_caches.clear_all()
    return Shipping(receiver, settings)
