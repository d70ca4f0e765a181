from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from clusters.agent_upgrades.agent_versions import agent_of
from clusters.agent_upgrades.rollouts import UpgradeRefused, order_for_node
from clusters.enrolment.join import invite
from clusters.enrolment.join_instructions import instructions, reaches_only_this_machine
from clusters.enrolment.node_tokens import revoke_node
from clusters.management.lookups import operator_named
from clusters.management.rollout_progress import add_upgrade_options, follow_rollout
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
        verbs.add_parser("list", help="list every node with its cluster, state and version of the agent")
        upgrade = verbs.add_parser("upgrade", help="order its agent to run this hub's version; runs go on")
        upgrade.add_argument("name", metavar="NAME")
        add_upgrade_options(upgrade)
        revoke_parser = verbs.add_parser("revoke", help="stop accepting the node; its runs end as lost")
        revoke_parser.add_argument("name", metavar="NAME")

    def handle(self, *args: object, **options: Any) -> None:
        try:
            {
                "token": self._token,
                "list": self._list,
                "revoke": self._revoke,
                "upgrade": self._upgrade,
            }[options["verb"]](options)
        except UpgradeRefused as error:
            self.stderr.write(str(error))
            raise SystemExit(REFUSED) from error
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
            version = f"{node.agent_version}{' (behind)' if agent_of(node).is_behind else ''}"
            state = status(node, now)
            self.stdout.write(f"{node.cluster.name}\t{node.name}\t{state}\t{node.address}\t{version}")

    def _upgrade(self, options: dict[str, Any]) -> None:
        operator = operator_named(options["user"])
        rollout = order_for_node(_node(options["name"]), operator, may_go_back=options["back"])
        follow_rollout(rollout, self.stdout.write, wait=options["wait"])

    def _revoke(self, options: dict[str, Any]) -> None:
        node = _node(options["name"])
        revoke_node(node)
        self.stdout.write(f"{node.name} is revoked.")


def _node(name: str) -> Node:
    node = Node.objects.select_related("cluster").filter(name=name).first()
    if node is None:
        raise SpecError("name", f"there is no node {name!r}; see manage.py node list")
    return node
