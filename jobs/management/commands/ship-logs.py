from __future__ import annotations

import getpass
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime

from jobs.log_shipping import targets
from jobs.log_shipping.models import LogTarget
from jobs.log_shipping.sample_line import SampleLineLost, send_sample_line
from workspaces.management.hub_command import HubCommand
from workspaces.models import Workspace

NOW = "now"


class Command(HubCommand):
    help = (
        "The log systems that get the lines of runs. Without an option it says how each "
        "is doing; the worker ships."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--workspace", metavar="NAME", help="that of this workspace, instead of the hub's"
        )
        action = parser.add_mutually_exclusive_group()
        action.add_argument("--test", action="store_true", help="send a test line")
        action.add_argument(
            "--since",
            metavar="TIME",
            help="ship attempts that began since then too, such as 2026-01-31 or 2026-01-31T12:00Z; "
            "`now`: skip what waits",
        )

    def handle(self, *args: object, **options: Any) -> None:
        if not (options["test"] or options["since"]):
            self._show(options["workspace"])
            return
        target = self._target(options["workspace"])
        if options["test"]:
            self._test(target)
        else:
            self._since(target, options["since"])

    def _target(self, workspace: str | None) -> LogTarget:
        if workspace is None:
            target = targets.hub_target(timezone.now())
            if target is None:
                raise CommandError(
                    "SHIP_LOGS_TO is not set, so the hub has no log system. Set it as for the hub."
                )
            return target
        target = LogTarget.objects.filter(workspace__slug=workspace).select_related("workspace").first()
        if target is None:
            is_workspace = Workspace.objects.filter(slug=workspace).exists()
            prefix = "" if is_workspace else "There is no such workspace: "
            raise CommandError(f"{prefix}{workspace} has no log system. An owner names it under Settings.")
        return target

    def _show(self, workspace: str | None) -> None:
        rows = targets.all_targets()
        if workspace is not None:
            rows = rows.filter(pk=self._target(workspace).pk)
        elif settings.LOG_DESTINATION is None:
            self.stdout.write("SHIP_LOGS_TO is not set, so the hub itself has no log system.")
        for target in rows.order_by("workspace__slug"):
            state = targets.state_of(target)
            self.stdout.write(f"{state.name}: {state.word}, {target.kind}, {state.host}")
            self.stdout.write(
                f"  {target.lines:,} lines shipped, of attempts since {target.since:%Y-%m-%d %H:%M} UTC"
            )
            if target.behind_bytes and target.behind_since:
                since = f"{target.behind_since:%Y-%m-%d %H:%M:%S}"
                self.stdout.write(f"  {target.behind_bytes:,} bytes wait, the oldest since {since} UTC")
            if target.refused_lines:
                self.stdout.write(f"  {target.refused_lines:,} lines refused: {target.last_refusal}")
            if target.last_error:
                self.stdout.write(f"  {target.last_error}")

    def _test(self, target: LogTarget) -> None:
        try:
            text = send_sample_line(target, getpass.getuser())
        except SampleLineLost as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"The log system took this line: {text}")

    def _since(self, target: LogTarget, text: str) -> None:
        since = timezone.now() if text == NOW else _moment(text)
        targets.start_from(target, since)
        self.stdout.write(
            f"Shipped are attempts that began since {since:%Y-%m-%d %H:%M:%S} UTC, as far as they were not "
            "shipped or skipped before."
        )


def _moment(text: str) -> datetime:
    try:
        day = parse_date(text)
        at = datetime(day.year, day.month, day.day, tzinfo=UTC) if day else parse_datetime(text)
    except ValueError as error:
        raise CommandError(f"--since {text}: {error}") from error
    if at is None:
        raise CommandError(f"--since {text} must be like 2026-01-31, 2026-01-31T12:00Z or now")
    return at if at.tzinfo else at.replace(tzinfo=UTC)
