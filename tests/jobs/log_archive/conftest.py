from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.log_archive import archive_round
from jobs.log_archive.open_archives import GRACE
from jobs.logs import log_store
from jobs.models import ArchivedLog, Run
from tests.jobs.builders import running
from tests.stores.s3_server import S3Server
from tests.workspaces.object_store.conftest import store  # noqa: F401 - a fixture
from trainhub_launch.report import MemberFact
from workspaces import process_caches
from workspaces.access import Principal
from workspaces.stored_files import blob_uploads, blobs

LOG, OTHER = "70_driver_log.txt", "logs/deep/own.txt"
EVENTS = "logs/events.out.tfevents.1"
# More than a request for a range reads at once.
LINES = b"".join(b"line %d of the log\n" % number for number in range(60_000))
LOGS = {LOG: LINES, OTHER: b"\xff\x00 no text\n" * 100}
DAY_LATER = timedelta(hours=25)


class EndedRun:
    """A run whose attempt has ended, with its logs below DATA_DIR/runs."""

    def __init__(
        self,
        who: Principal,
        store: S3Server,  # noqa: F811
        logs: Mapping[str, bytes],
        *ranks: MemberFact,
    ) -> None:
        self.store = store
        self.played, self.run = running(who)
        for name, content in logs.items():
            for start in range(0, len(content), 2**18):
                self.played.log(self.run, name, start, content[start : start + 2**18])
        self.played.log(self.run, EVENTS, 0, b"events")
        self.played.finish(self.run, *ranks)
        self.run.refresh_from_db()
        self.ended_at = timezone.now()

    @property
    def id(self) -> str:
        pk: str = self.run.pk
        return pk

    def local(self) -> set[str]:
        """The names of its logs on the disk."""
        return set(log_store.local_log_sizes(self.id, 1))

    def store_logs(self) -> None:
        """The first step: the logs are recorded as stored files, which wait for their upload."""
        archive_round.archive_due(self.ended_at + DAY_LATER)
        process_caches.clear_all()

    def remove_files(self) -> int:
        """The second step, after its grace."""
        count = archive_round.archive_due(self.ended_at + DAY_LATER + GRACE)
        process_caches.clear_all()
        return count

    def archive(self, *, is_local: bool = False) -> None:
        """All steps. `is_local`: copies stay on the disk."""
        self.store_logs()
        blob_uploads.upload_waiting()
        assert self.remove_files() == 1
        assert not self.local()
        if not is_local:
            drop_copies()


def drop_copies() -> None:
    """Removes the local copies of all archived logs."""
    for sha256 in ArchivedLog.objects.values_list("sha256", flat=True):
        blobs.path(sha256).unlink(missing_ok=True)


def read_whole(run: Run, name: str, limit: int = 2**20) -> bytes:
    """The log as readers read it: from offset to offset."""
    content = b""
    while piece := log_store.read(run.pk, 1, name, len(content), limit):
        content += piece
    return content


@pytest.fixture
def ended(who: Principal, store: S3Server) -> EndedRun:  # noqa: F811
    return EndedRun(who, store, LOGS)
