from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from clusters.enrolment.join import invite
from clusters.enrolment.join_instructions import instructions, reaches_only_this_machine
from clusters.enrolment.node_tokens import revoke_node
from clusters.models import Node
from clusters.node_reports.heartbeat import status
from trainhub_launch.errors import SpecError
from workspaces.management.hub_command import HubCommand

REFUSED = 2


class Command(HubCommand):
    help = "Nodes: invite a machine, list what has joined, revoke a node."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        token = verbs.add_parser(
            "token", help="print a join token (works once, within 24 hours) and the command to run"
        )
        token.add_argument("name", metavar="NAME", help="the name of the node")
        token.add_argument(
            "--cluster",
            default="local",
            help="its cluster, which is created if it does not exist (default: local)",
        )
        token.add_argument(
            "--monitor-only", action="store_true", help="only monitor the machine; place no runs on it"
        )
        verbs.add_parser("list", help="list every node with its cluster and state")
        revoke_parser = verbs.add_parser("revoke", help="stop accepting the node; its runs end as lost")
        revoke_parser.add_argument("name", metavar="NAME")

    def handle(self, *args: object, **options: Any) -> None:
        try:
            {"token": self._token, "list": self._list, "revoke": self._revoke}[options["verb"]](options)
        except SpecError as error:
            self.stderr.write(f"{error.field}: {error.message}")
            raise SystemExit(REFUSED) from error

    def _token(self, options: dict[str, Any]) -> None:
        _, text = invite(options["cluster"], options["name"], None, monitor_only=options["monitor_only"])
        join = instructions(text)
        self.stdout.write(
            f"{text}\n\nRun on the machine that is to join (it needs Python 3.11 or newer):\n  {join.command}"
        )
        if reaches_only_this_machine():
            self.stderr.write(
                "This hub is reached from this machine alone; start it with OPEN=1 for others to join."
            )

    def _list(self, options: dict[str, object]) -> None:
        now = timezone.now()
        for node in Node.objects.select_related("cluster").order_by("cluster__name", "name"):
            self.stdout.write(f"{node.cluster.name}\t{node.name}\t{status(node, now)}\t{node.address}")

    def _revoke(self, options: dict[str, object]) -> None:
        node = Node.objects.select_related("cluster").filter(name=options["name"]).first()
        if node is None:
            raise SpecError("name", f"there is no node {options['name']!r}; see manage.py node list")
        revoke_node(node)
        self.stdout.write(f"{node.name} is revoked.")
