from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db.models import Count, Sum

from jobs.log_archive import way_back
from jobs.models import ArchivedLog
from workspaces.management.hub_command import HubCommand
from workspaces.object_store.errors import StoreUnavailable


class Command(HubCommand):
    help = (
        "The logs of runs that are stored files, with BLOB_STORE. `logs status` counts them; `logs to-runs` "
        "brings them back to DATA_DIR/runs. It may run while the hub works, and goes on where it was "
        "interrupted."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        verbs.add_parser("status", help="count the logs that are stored files")
        verbs.add_parser("to-runs", help="bring all of them back to DATA_DIR/runs")

    def handle(self, *args: object, **options: Any) -> None:
        if options["verb"] == "to-runs":
            try:
                for count in way_back.return_logs():
                    self.stdout.write(f"{count:,} logs are in DATA_DIR/runs again.")
            except (StoreUnavailable, way_back.ReturnRefused) as error:
                raise CommandError(str(error)) from error
        facts = ArchivedLog.objects.aggregate(count=Count("pk"), total=Sum("size_bytes", default=0))
        self.stdout.write(f"{facts['count']:,} logs are stored files, {facts['total'] / 2**20:,.1f} MiB.")
