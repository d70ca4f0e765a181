from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser

from clusters.agent_upgrades.rollouts import UpgradeRefused, order_for_cluster
from clusters.fair_share.shares import set_shares, share_rows
from clusters.management.lookups import EXIT_REFUSED, cluster_named, operator_named
from clusters.management.rollout_progress import add_upgrade_options, follow_rollout
from clusters.models import Cluster, ProvidedMachine
from clusters.overview import ClusterCard, cluster_card
from clusters.provisioning import cluster_admin
from clusters.provisioning.cluster_admin import DEFAULTS, ClusterExists, ClusterInUse
from clusters.provisioning.states import STARTING
from clusters.states import NodeStatus
from trainhub_launch.errors import SpecError
from workspaces.management.hub_command import HubCommand

POLL_INTERVAL_S = 1.0
VERBS = {"drain": "give it no new runs", "resume": "let it take runs again", "delete": "once it is empty"}


class Command(HubCommand):
    help = "Clusters: create, list, wait for nodes, drain, resume, delete."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--user", default="", help="act as this operator (default: the first one)")
        verbs = parser.add_subparsers(dest="verb", required=True)
        verbs.add_parser("list", help="list every cluster with its nodes and GPUs")
        create = verbs.add_parser(
            "create", help="create a cluster; an existing one of that name is not changed"
        )
        create.add_argument("name", metavar="NAME")
        create.add_argument("--description", default="")
        create.add_argument(
            "--provider", default="", help="creates and releases its nodes (docs/providers.md)"
        )
        for setting, words in (
            ("min_nodes", "smallest number of the provider's nodes"),
            ("max_nodes", "largest number of the provider's nodes"),
            ("idle_s", "seconds after which an idle node is released"),
            ("node_gpus", "GPUs of each created node"),
            ("node_slots", "process slots of each created node"),
        ):
            create.add_argument(
                f"--{setting.replace('_', '-')}", type=int, default=DEFAULTS[setting], help=words
            )
        create.add_argument("--node-gpu-model", default="", help="shown to people, such as H100")
        create.add_argument(
            "--low-priority", action="store_true", help="its nodes may disappear; their runs then restart"
        )
        create.add_argument(
            "--use-unhealthy-gpus",
            action="store_false",
            dest="avoid_unhealthy_gpus",
            help="place runs on GPUs with a critical alert, too",
        )
        wait = verbs.add_parser(
            "wait", help="wait until enough nodes are ready; exits with 1 if they are not ready in time"
        )
        wait.add_argument("name", metavar="NAME")
        wait.add_argument(
            "--nodes",
            type=int,
            default=None,
            help="how many (default: the cluster's smallest number of nodes)",
        )
        wait.add_argument("--timeout-minutes", type=float, default=20.0)
        shares = verbs.add_parser("shares", help="print the shares of the workspaces, or set some")
        shares.add_argument("name", metavar="NAME")
        shares.add_argument("shares", metavar="SLUG=SHARE", nargs="*")
        _add_upgrade(verbs)
        for verb, words in VERBS.items():
            verbs.add_parser(verb, help=words).add_argument("name", metavar="NAME")

    def handle(self, *args: object, **options: Any) -> None:
        verb = options["verb"]
        try:
            {
                "list": self._list,
                "create": self._create,
                "wait": self._wait,
                "shares": self._shares,
                "upgrade": self._upgrade,
            }.get(verb, self._change)(options)
        except SpecError as error:
            self.stderr.write(f"{error.field}: {error.message}")
            raise SystemExit(EXIT_REFUSED) from error
        except (ClusterInUse, UpgradeRefused) as error:
            self.stderr.write(str(error))
            raise SystemExit(EXIT_REFUSED) from error

    def _list(self, options: Mapping[str, Any]) -> None:
        for cluster in Cluster.objects.filter(deleted_at=None).order_by("name"):
            self.stdout.write(_line(cluster_card(cluster, None)))

    def _create(self, options: dict[str, Any]) -> None:
        name = options["name"]
        try:
            cluster_admin.create(
                name, {setting: options[setting] for setting in DEFAULTS}, operator_named(options["user"])
            )
        except ClusterExists:
            self.stdout.write(f"Found existing cluster {name}; nothing is changed.")
        else:
            self.stdout.write(f"Created cluster {name}.")

    def _wait(self, options: dict[str, Any]) -> None:
        cluster = cluster_named(options["name"])
        target = cluster.min_nodes if options["nodes"] is None else options["nodes"]
        deadline = time.monotonic() + 60 * options["timeout_minutes"]
        last_line = ""
        while True:
            card = cluster_card(cluster, None)
            starting = ProvidedMachine.objects.filter(cluster=cluster, state__in=STARTING).count()
            coming = f", {starting} starting" if starting else ""
            line = f"{len(card.ready)} of {target} nodes are ready{coming}."
            if line != last_line:
                self.stderr.write(line)
                last_line = line
            if len(card.ready) >= target:
                return
            if time.monotonic() >= deadline:
                missing = [node for node in card.nodes if node.status is not NodeStatus.READY]
                not_ready = ", ".join(f"{node.node.name} is {node.status}" for node in missing)
                self.stderr.write(
                    f"The nodes were not ready within {options['timeout_minutes']:g} minutes."
                    + (f" {not_ready}." if not_ready else "")
                )
                raise SystemExit(1)
            time.sleep(POLL_INTERVAL_S)

    def _shares(self, options: dict[str, Any]) -> None:
        cluster = cluster_named(options["name"])
        if options["shares"]:
            values = dict(_share(text) for text in options["shares"])
            set_shares(cluster, values, operator_named(options["user"]))
        for row in share_rows(cluster):
            self.stdout.write(
                f"{row.workspace.slug}\tshare {row.share:g}, {row.share_percent} % of all"
                f"\tused {row.gpu_hours:.1f} GPU-hours, {row.used_percent} % of all"
            )

    def _upgrade(self, options: dict[str, Any]) -> None:
        rollout = order_for_cluster(
            cluster_named(options["name"]),
            operator_named(options["user"]),
            at_once=options["at_once"],
            may_go_back=options["back"],
        )
        follow_rollout(rollout, self.stdout.write, wait=options["wait"])

    def _change(self, options: dict[str, Any]) -> None:
        cluster, operator = cluster_named(options["name"]), operator_named(options["user"])
        result = {"drain": "is drained", "resume": "takes runs", "delete": "is deleted"}[options["verb"]]
        {"drain": cluster_admin.drain, "resume": cluster_admin.resume, "delete": cluster_admin.delete}[
            options["verb"]
        ](cluster, operator)
        self.stdout.write(f"{options['name']} {result}.")


def _line(card: ClusterCard) -> str:
    drained = "\tdrained" if card.cluster.drained_at else ""
    nodes = f"{len(card.ready)} of {len(card.nodes)} nodes ready"
    return f"{card.cluster.name}\t{nodes}\t{card.gpus_free} of {card.gpus} GPUs free{drained}"


def _share(text: str) -> tuple[str, float]:
    slug, _, value = text.partition("=")
    try:
        return slug, float(value)
    except ValueError as error:
        raise SpecError(slug or "SLUG=SHARE", "must be given as SLUG=SHARE, such as vision=3") from error


def _add_upgrade(verbs: Any) -> None:
    upgrade = verbs.add_parser(
        "upgrade", help="order its agents to run this hub's version, a few nodes at a time; runs go on"
    )
    upgrade.add_argument("name", metavar="NAME")
    upgrade.add_argument("--at-once", type=int, default=1, metavar="N", help="nodes at a time (1)")
    add_upgrade_options(upgrade, with_user=False)
