"""Collects the findings about the packages of a run's environment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clusters.models import Node
from environments.contents.package_set import packages_of_environment
from jobs.environment_findings.companions import logger_findings, mpi_findings, repeated_package_findings
from jobs.environment_findings.gpu_builds import gpu_build_findings
from jobs.environment_findings.missing_modules import missing_module_findings
from jobs.environment_findings.remedies import change_link
from jobs.environment_findings.source_scans import script_imports
from trainhub_launch.findings import Finding
from trainhub_launch.scheduler.capacity import FreeNode
from trainhub_launch.spec import RunSpec
from workspaces.access import Principal
from workspaces.states import Role


def package_findings(spec: RunSpec, principal: Principal, nodes: Sequence[FreeNode]) -> Iterator[Finding]:
    """Yields what the environment's packages mean for the run on these nodes. `nodes`: those that it would
    get; without any, curated environments are not judged, because their packages depend on the Python."""
    python = next((item.version for node in nodes for item in node.interpreters[:1]), "")
    packages = packages_of_environment(spec.environment, principal.workspace, python)
    if packages is None:
        return

    def links(requirements: Sequence[str], chosen: str) -> str:
        may_change = principal.may(Role.CONTRIBUTOR)
        return change_link(principal.workspace, spec.environment, requirements, chosen) if may_change else ""

    # Modules may come from folders that only the node knows.
    has_own_paths = "PYTHONPATH" in spec.environment_variables
    imports = None if has_own_paths else script_imports(spec, principal.workspace)
    if imports is not None:
        yield from missing_module_findings(packages, imports, links)
        yield from mpi_findings(spec, packages, imports, links)
        yield from logger_findings(packages, imports, links)
    names = [node.name for node in nodes]
    drivers = dict(Node.objects.filter(name__in=names).order_by("name").values_list("name", "driver"))
    yield from gpu_build_findings(spec, packages, imports, drivers)
    yield from repeated_package_findings(packages)
