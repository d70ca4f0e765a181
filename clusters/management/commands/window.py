from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.core.management.base import CommandParser
from django.utils.dateparse import parse_datetime

from clusters.management.lookups import EXIT_REFUSED, cluster_named, operator_named
from clusters.models import NodeReservation
from clusters.windows import node_windows
from trainhub_launch.errors import SpecError
from workspaces.management.hub_command import HubCommand


class Command(HubCommand):
    help = (
        "Reserved and maintenance windows of nodes: `window list CLUSTER`, `window add CLUSTER NODE … --from "
        "TIME --to TIME [--workspace SLUG] [--note TEXT]`, `window end CLUSTER ID`. Times are in UTC."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--user", default="", help="act as this operator (default: the first one)")
        verbs = parser.add_subparsers(dest="verb", required=True)
        verbs.add_parser("list", help="list the windows that are not over").add_argument(
            "name", metavar="CLUSTER"
        )
        add = verbs.add_parser("add", help="keep nodes free; active runs continue")
        add.add_argument("name", metavar="CLUSTER")
        add.add_argument("nodes", metavar="NODE", nargs="+")
        add.add_argument(
            "--from", dest="begins_at", metavar="TIME", required=True, help="such as '2026-12-24 18:00' (UTC)"
        )
        add.add_argument("--to", dest="ends_at", metavar="TIME", required=True)
        add.add_argument(
            "--workspace", metavar="SLUG", default="", help="whose runs are taken (default: maintenance)"
        )
        add.add_argument("--note", default="", help="of a maintenance window, waiting runs say it")
        end = verbs.add_parser("end", help="end a window now, or before it begins")
        end.add_argument("name", metavar="CLUSTER")
        end.add_argument("id", metavar="ID", type=int, help="as printed by `window list`")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, f"_{options['verb']}")(options)
        except SpecError as error:
            self.stderr.write(f"{error.field}: {error.message}")
            raise SystemExit(EXIT_REFUSED) from error

    def _list(self, options: dict[str, Any]) -> None:
        for window in node_windows.current(cluster_named(options["name"])):
            self.stdout.write(_line(window))

    def _add(self, options: dict[str, Any]) -> None:
        windows = node_windows.add(
            cluster_named(options["name"]),
            options["nodes"],
            (_time("begins_at", options["begins_at"]), _time("ends_at", options["ends_at"])),
            operator_named(options["user"]),
            workspace=options["workspace"],
            note=options["note"],
        )
        for window in windows:
            self.stdout.write(_line(window))

    def _end(self, options: dict[str, Any]) -> None:
        cluster = cluster_named(options["name"])
        windows = NodeReservation.objects.select_related("node__cluster", "workspace")
        window = windows.filter(pk=options["id"], node__cluster=cluster).first()
        if window is None:
            raise SpecError(
                "id", f"there is no window {options['id']}; see manage.py window list {cluster.name}"
            )
        node_windows.end(window, operator_named(options["user"]))
        self.stdout.write(f"The window of {window.node.name} was ended.")


def _time(field: str, text: str) -> datetime:
    """Returns the time, in UTC unless it names another zone. Raises SpecError."""
    try:
        moment = parse_datetime(text.strip())
    except ValueError:
        moment = None
    if moment is None:
        raise SpecError(field, f"{text!r} is no time; write it as 2026-12-24 18:00, in UTC")
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _line(window: NodeReservation) -> str:
    begin, end = window.begins_at.astimezone(UTC), window.ends_at.astimezone(UTC)
    owner = "maintenance" if window.workspace is None else f"for {window.workspace.slug}"
    note = f"\t{window.note}" if window.note else ""
    return (
        f"{window.pk}\t{window.node.name}\t{begin:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC\t{owner}{note}"
    )
