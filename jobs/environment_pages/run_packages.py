"""The packages that the ranks of a run really had: a tab of its page, and a file to download."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from environments.lock_file import LockedPackage, PackageChange
from environments.models import EnvironmentVersion
from jobs.models import Run
from jobs.sources import package_records
from jobs.sources.package_records import NodePackages
from jobs.states import FINAL, RunKind
from jobs.views.lanes import requested_attempt
from jobs.views.run_lookup import run_numbered
from jobs.views.tabs import Tab
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role


@dataclass(frozen=True)
class PackageGroup:
    """Nodes with the same packages. `record`: that of the first one; `changes`: what differs from the lock,
    None if there is none to compare with."""

    nodes: tuple[str, ...]
    record: NodePackages
    changes: tuple[PackageChange, ...] | None

    @property
    def packages(self) -> tuple[LockedPackage, ...]:
        return self.record.packages or ()


@require_safe
@needs(Role.VIEWER)
def download_requirements(request: WorkspaceRequest, number: int) -> HttpResponse:
    """The packages of a node, by default of the first one that has sent its list, as requirements.txt."""
    run = run_numbered(request.principal, number)
    attempt = requested_attempt(run, request.GET.get("attempt", ""))
    node = request.GET.get("node", "")
    for record in package_records.read_package_records(run, attempt):
        if record.packages is not None and node in ("", record.node):
            response = HttpResponse(
                package_records.requirements_text(record), content_type="text/plain; charset=utf-8"
            )
            response["Content-Disposition"] = 'attachment; filename="requirements.txt"'
            return response
    raise Http404("No list of packages has been stored for that node and attempt.")


def _context(run: Run, attempt: int, _: HttpRequest) -> dict[str, object]:
    records = package_records.read_package_records(run, attempt)
    version = package_records.locked_version(run)
    return {
        "package_groups": _groups(records, version),
        "missing": [record.node for record in records if record.packages is None],
        "node_rows": package_records.node_differences(records),
        "locked": version,
        "is_final": run.state in FINAL,
    }


def _groups(records: list[NodePackages], version: EnvironmentVersion | None) -> list[PackageGroup]:
    groups: dict[NodePackages, list[NodePackages]] = {}
    for record in records:
        if record.packages is not None:
            groups.setdefault(replace(record, node=""), []).append(record)
    return [
        PackageGroup(
            tuple(record.node for record in same),
            same[0],
            None if version is None else package_records.lock_differences(version, same[0]),
        )
        for same in groups.values()
    ]


def _shows(run: Run) -> bool:
    return run.kind == RunKind.JOB


TAB = Tab("Packages", _context, is_detail=True, shows=_shows)
