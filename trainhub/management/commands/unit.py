from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from trainhub.up import service_unit
from workspaces.management.hub_command import HubCommand


class Command(HubCommand):
    help = (
        "Prints a unit for systemd that keeps this hub running, confined to its data folder, on a machine "
        "that takes no runs itself; and, on stderr, how to install it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--with-node",
            action="store_true",
            help="this machine takes runs, too: root starts it, and the unit confines nothing, because that "
            "would confine all runs",
        )

    def handle(self, *args: object, **options: Any) -> None:
        self.stdout.write(service_unit.hub_unit(with_node=options["with_node"]))
        self.stderr.write(service_unit.advice(with_node=options["with_node"]))
