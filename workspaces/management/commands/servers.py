"""`manage.py servers`: which web servers and workers use this database."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from workspaces.management.hub_command import HubCommand
from workspaces.servers import data_folder, server_registry
from workspaces.servers.differences import server_warnings
from workspaces.servers.server_list import ServerState, server_states

WIDTHS = "{:24} {:7} {:24} {:10} {}"


class Command(HubCommand):
    help = "Lists the web servers and workers of this hub, and what is wrong with them."

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
        self.stdout.write(WIDTHS.format("NAME", "PART", "SERVER_ADDRESS", "VERSION", "STATE"))
        for server in server_states():
            facts = (server.name, server.part, server.address or "-", server.version)
            self.stdout.write(WIDTHS.format(*facts, _state(server)))
        for warning in server_warnings():
            self.stdout.write(f"\n{warning.text}\n{warning.remedy}")


def _state(server: ServerState) -> str:
    if not server.is_living:
        return f"silent for {server.silent_s:.0f} s"
    return "lives, runs the periodic tasks" if server.is_leader else "lives"
