from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.core.management.base import CommandParser

from jobs import causes
from jobs.causes import Cause
from jobs.causes.cause_selection import group_reasons
from jobs.logs.log_follower import LogFollower
from jobs.models import Run
from jobs.scheduling import run_actions
from jobs.sources import snapshots
from jobs.states import RunState
from trainhub_launch.errors import SpecError
from trainhub_launch.fields import check_text
from trainhub_launch.findings import Finding
from trainhub_launch.json_types import JsonValue
from trainhub_launch.spec_reader import read_spec
from workspaces.access import Principal, membership_principal
from workspaces.management.hub_command import HubCommand
from workspaces.models import User, Workspace

EXIT_CODES = {RunState.COMPLETED: 0, RunState.FAILED: 1, RunState.CANCELED: 130}
REFUSED = 2
INTERRUPTED = 130


class Command(HubCommand):
    help = (
        "Submit a run from a RunSpec file. Besides a snapshot or an example the source may be a folder "
        "beside the file: "
        '{"type": "local", "path": "./folder"}. With --wait: prints the log and exits 0 (Completed), 1 '
        "(Failed), "
        "130 (Canceled); 2 where the spec is refused."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("spec", metavar="SPEC.json", type=Path)
        parser.add_argument("--wait", action="store_true", help="follow the log until the run has ended")
        parser.add_argument("--user", default="admin", help="submit as this person (default: admin)")
        parser.add_argument(
            "--workspace", default="", metavar="SLUG", help="by default the one that the person joined first"
        )

    def handle(self, *args: object, **options: Any) -> None:
        try:
            run = self._submit(options["spec"], _person(options["user"], options["workspace"]))
        except SpecError as error:
            for finding in error.findings if isinstance(error, run_actions.SubmitRefused) else ():
                if (finding.field, finding.message) != (error.field, error.message):
                    self._write_finding(finding)
            self.stderr.write(f"{error.field}: {error.message}")
            raise SystemExit(REFUSED) from error
        except PermissionDenied as error:
            self.stderr.write(f"user: {error}")
            raise SystemExit(REFUSED) from error
        self.stderr.write(f"run {run.number} ({run.pk}): {settings.PUBLIC_URL}/runs/{run.number}/")
        if options["wait"]:
            raise SystemExit(self._follow(run))

    def _submit(self, path: Path, who: Principal) -> Run:
        data = dict(_read(path))
        source = data.get("source")
        if isinstance(source, Mapping) and source.get("type") == "local":
            data["source"] = {"type": "snapshot", "id": _freeze(source, path.parent, who)}
        spec = read_spec(data)
        for finding in run_actions.preview(spec, who).findings:
            if finding.level == "warning":
                self._write_finding(finding)
        return run_actions.submit(spec, who)

    def _follow(self, run: Run) -> int:
        follower = LogFollower(run.pk, out=self._print, note=self.stderr.write)
        try:
            ended = follower.follow_to_end()
        except KeyboardInterrupt:
            self.stderr.write(
                f"run {run.number} continues; cancel it on its page: {settings.PUBLIC_URL}/runs/{run.number}/"
            )
            return INTERRUPTED
        if (cause := causes.for_run(ended)) is not None:
            self._explain(cause)
        return EXIT_CODES[RunState(ended.state)]

    def _explain(self, cause: Cause) -> None:
        """Prints which rank failed first, why, and what to do. The traceback itself is in the log printed
        before."""
        self.stderr.write(f"\nThe cause: {cause.line}")
        if cause.meaning:
            self.stderr.write(f"{cause.title}. {cause.meaning}" if cause.exception else cause.meaning)
        self.stderr.write(f"What to do: {cause.remedy}")
        for why, ranks in group_reasons([(other.rank, other.why) for other in cause.others]):
            self.stderr.write(f"Rank{'s' if len(ranks) > 1 else ''} {ranks}: {why}")

    def _print(self, text: str) -> None:
        self.stdout.write(text, ending="")
        self.stdout.flush()

    def _write_finding(self, finding: Finding) -> None:
        link = f" ({finding.action}: {settings.PUBLIC_URL}{finding.link})" if finding.link else ""
        level = "" if finding.level == "error" else f"{finding.level}: "
        self.stderr.write(f"{level}{finding.field}: {finding.message}{link}")


def _read(path: Path) -> Mapping[str, object]:
    """Returns the RunSpec in a file, which holds either the spec itself or an example's description."""
    try:
        data = json.loads(path.read_text(), parse_constant=_no_number)
    except OSError as error:
        raise SpecError("spec", f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise SpecError("spec", f"{path} is not JSON: {error}") from error
    except RecursionError as error:
        raise SpecError("spec", "is nested too deeply") from error
    if isinstance(data, Mapping) and "title" in data and isinstance(data.get("spec"), Mapping):
        data = data["spec"]
    if not isinstance(data, Mapping):
        raise SpecError("spec", "must be a JSON object")
    return data


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number; write it as text, in quotes")


def _freeze(source: Mapping[str, JsonValue], beside: Path, who: Principal) -> str:
    unknown = sorted(set(source) - {"type", "path"})
    if unknown:
        raise SpecError(f"source.{unknown[0]}", "is not a known field; known fields: path, type")
    path = source.get("path")
    if not isinstance(path, str) or not path.strip():
        raise SpecError("source.path", "name the folder that holds the script, relative to the spec file")
    check_text("source.path", path)
    folder = (beside / path).resolve()
    if not folder.is_dir():
        raise SpecError("source.path", f"{folder} is not a folder")
    return snapshots.from_folder(folder, who).sha256


def _person(name: str, slug: str) -> Principal:
    user = User.objects.filter(username=name).first()
    workspace = Workspace.objects.filter(slug=slug).first() if slug else None
    who = membership_principal(user, workspace) if user else None
    if slug and (workspace is None or who is None):
        raise SpecError("workspace", f"{name} is not a member of {slug}; see `manage.py person list`")
    if who is None:
        raise SpecError(
            "user",
            f"{name} is not a user here, or not a member of any workspace; see the members under Settings",
        )
    return who
