from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from clusters.management.lookups import EXIT_REFUSED, operator_named, workspace_named
from clusters.models import Quota
from jobs.display.text import bytesize
from jobs.quotas import quota_admin
from jobs.quotas.quota_admin import QuotaRow
from jobs.quotas.quota_check import PEOPLE, PERSON, WORKSPACE
from trainhub_launch.errors import SpecError
from workspaces.management.hub_command import HubCommand
from workspaces.models import Workspace


class Command(HubCommand):
    help = (
        "Quotas: `quota list [SLUG]`, `quota set SLUG [--each-person | --person USER] LIMITS`, `quota clear "
        "SLUG [--each-person | --person USER]`."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--user", default="", help="act as this operator (default: the first one)")
        verbs = parser.add_subparsers(dest="verb", required=True)
        listed = verbs.add_parser(
            "list", help="print the quotas of a workspace, or of all, with what is used"
        )
        listed.add_argument("slug", metavar="SLUG", nargs="?", default="")
        change = verbs.add_parser("set", help="set a quota; limits that are not given are none")
        clear = verbs.add_parser("clear", help="remove a quota")
        for verb in (change, clear):
            verb.add_argument("slug", metavar="SLUG")
            whose = verb.add_mutually_exclusive_group()
            whose.add_argument("--each-person", action="store_true", help="for each person in the workspace")
            whose.add_argument("--person", metavar="USER", default="", help="for one person in it")
        change.add_argument("--gpus", type=int, help="GPUs at once, in all clusters")
        change.add_argument("--gpu-hours", type=float, help="in a calendar month (UTC)")
        change.add_argument("--waiting-runs", type=int)
        change.add_argument("--disk-gib", type=float, help="GiB of files that the hub stores")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, f"_{options['verb']}")(options)
        except SpecError as error:
            self.stderr.write(f"{error.field}: {error.message}")
            raise SystemExit(EXIT_REFUSED) from error

    def _list(self, options: dict[str, Any]) -> None:
        limited = Workspace.objects.filter(pk__in=Quota.objects.values("workspace")).order_by("slug")
        for workspace in [workspace_named(options["slug"])] if options["slug"] else limited:
            for row in quota_admin.quota_rows(workspace):
                self.stdout.write(f"{workspace.slug}\t{_line(row)}")

    def _set(self, options: dict[str, Any]) -> None:
        limits = {name: options[name] for name in quota_admin.LIMITS}
        if all(value is None for value in limits.values()):
            names = ", ".join(f"--{name.replace('_', '-')}" for name in quota_admin.LIMITS)
            raise SpecError("limits", f"name at least one of {names}, or remove the quota by `quota clear`")
        self._change(options, limits)

    def _clear(self, options: dict[str, Any]) -> None:
        self._change(options, {})

    def _change(self, options: dict[str, Any], limits: dict[str, float | None]) -> None:
        scope = PEOPLE if options["each_person"] else PERSON if options["person"] else WORKSPACE
        workspace = workspace_named(options["slug"])
        operator = operator_named(options["user"])
        row = quota_admin.set_quota(workspace, scope, options["person"], limits, operator)
        self.stdout.write("The quota was removed." if row is None else "The quota was set.")
        if row is not None and row.note:
            self.stderr.write(row.note)


def _line(row: QuotaRow) -> str:
    owner = {WORKSPACE: "the whole workspace", PEOPLE: "each person"}.get(row.scope, row.person)
    balance = row.balance
    values = (
        ("GPUs", balance.gpus, str(balance.gpus_held), ""),
        ("GPU-hours this month", balance.gpu_hours, f"{balance.gpu_hours_used:.1f}", ""),
        ("waiting runs", balance.waiting_runs, str(balance.runs_waiting), ""),
        ("disk", balance.disk_gib, bytesize(balance.disk_bytes_used), " GiB"),
    )
    parts = [
        f"{name}: {'' if row.scope == PEOPLE else f'{used} of '}{limit:g}{unit}"
        for name, limit, used, unit in values
        if limit is not None
    ]
    return "\t".join([owner, *parts])
