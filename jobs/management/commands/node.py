from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from clusters.enrolment import enrol
from trainhub_launch.errors import SpecError
from workspaces import audit


class Command(BaseCommand):
    help = "Nodes: `node token NAME [--cluster local]` enrols a machine and prints its token, this one time."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        token = verbs.add_parser("token", help="make the node, or give it a new token; its older tokens end")
        token.add_argument("name", metavar="NAME")
        token.add_argument("--cluster", default="local", help="made where there is none of that name (default: local)")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            node, text = enrol(options["cluster"], options["name"])
        except SpecError as error:
            self.stderr.write(f"{error.field}: {error.message}")
            raise SystemExit(2) from error
        audit.record("command line", "node.token", node.name, cluster=options["cluster"])
        self.stdout.write(text)
