from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from workspaces.audit_trail import chain
from workspaces.management.hub_command import HubCommand

BROKEN = 1


class Command(HubCommand):
    help = (
        "The audit trail: `audit verify` checks that no event was changed or deleted after it was sealed; "
        "it exits with 1 if one was."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        verbs.add_parser(
            "verify", help="read all events, and compare them with their seals and the file of heads"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        result = chain.verify()
        for problem in result.problems:
            self.stderr.write(problem)
        waiting = f"; {result.unsealed} wait for their seal" if result.unsealed else ""
        if result.problems:
            self.stderr.write(f"{len(result.problems)} problems in {result.count} sealed events{waiting}.")
            raise SystemExit(BROKEN)
        self.stdout.write(f"{result.count} sealed events are as they were written{waiting}.")
