from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from trainhub.upgrade.upgrade_check import Weight, upgrade_findings
from workspaces.management.hub_command import HubCommand


class Command(HubCommand):
    help = (
        "Says what an upgrade to this version means for the hub of DATA_DIR and DATABASE_URL, which may run "
        "meanwhile. docs/upgrade.md has the steps."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", required=True, help="look, and change nothing")

    def handle(self, *args: object, **options: Any) -> None:
        findings = list(upgrade_findings())
        for finding in findings:
            self.stdout.write(f"{finding.weight:<5} {finding.sentence}")
        blocking = sum(finding.weight is Weight.BLOCKS for finding in findings)
        if blocking:
            raise CommandError(f"{blocking} things have to be done before the upgrade; see above.")
        self.stdout.write("Nothing is in the way of the upgrade. The steps: docs/upgrade.md.")
