"""`manage.py servers`: which web servers and workers use this database."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db.models.functions import Now

from workspaces.management.hub_command import HubCommand
from workspaces.servers import data_folder, server_registry
from workspaces.servers.membership import clock_phrase, is_punctual
from workspaces.servers.models import RoundLease, ServerProcess
from workspaces.servers.round_lease import PERIODIC_TASKS

WIDTHS = "{:24} {:7} {:24} {:10} {}"


class Command(HubCommand):
    help = "Lists the web servers and workers of this hub: where each is, and whether it lives."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--adopt-data-folder",
            action="store_true",
            help="let DATA_DIR be the folder of this database from now on; its former one is gone for good",
        )

    def handle(self, *args: object, **options: Any) -> None:
        if options["adopt_data_folder"]:
            try:
                data_folder.adopt_folder()
            except data_folder.WrongDatabase as error:
                raise CommandError(str(error)) from error
            self.stdout.write("This data folder is the database's from now on.")
            return
        if not server_registry.is_shareable():
            self.stdout.write("SQLite has one server: the one that `manage.py up` starts with this DATA_DIR.")
            return
        silence_s = server_registry.silence_s()
        # Work that must not overlap has leases of its own, which any worker may have.
        leases = RoundLease.objects.filter(name=PERIODIC_TASKS, until__gt=Now())
        leaders = set(leases.values_list("holder", flat=True))
        self.stdout.write(WIDTHS.format("NAME", "PART", "SERVER_ADDRESS", "VERSION", "STATE"))
        for server in ServerProcess.objects.all():
            facts = (server.name, server.role, server.address or "-", server.version)
            self.stdout.write(WIDTHS.format(*facts, _state(server, silence_s.get(server.pk, 0.0), leaders)))


def _state(server: ServerProcess, silent_s: float, leaders: set[str]) -> str:
    if silent_s > server_registry.DEAD_AFTER_S:
        return f"silent for {silent_s:.0f} s"
    words = ["lives"]
    if server.role == server_registry.WORKER and f"{server.name}:{server.machine}" in leaders:
        words.append("runs the periodic tasks")
    if not is_punctual(server.clock_offset_s):
        words.append(f"its clock is {clock_phrase(server.clock_offset_s)}: have it set by NTP")
    return ", ".join(words)
