"""What the environments of waiting runs need of the nodes that get them."""

from __future__ import annotations

from collections.abc import Collection

from environments.catalog import SYSTEM, version_capabilities
from environments.curated import BY_NAME
from environments.curated_versions import stored_curated
from environments.kinds.all_kinds import KINDS
from environments.models import EnvironmentVersion
from environments.packages.glibc_needs import glibc_capabilities
from jobs.models import Run


class EnvironmentNeeds:
    """The capabilities that these runs need of nodes, by their environments: at most three queries for those
    of workspaces, two for each curated one, and none for interpreters of nodes."""

    def __init__(self, runs: Collection[Run]) -> None:
        used = {_key(run)[1] for run in runs}
        curated = {name: stored_curated(name) for name in used & BY_NAME.keys()}
        self._curated = {name: version_capabilities(row) for name, row in curated.items() if row is not None}
        names = used - {"", SYSTEM, *BY_NAME}
        self._capabilities: dict[tuple[int, str, str], frozenset[str]] = {}
        if not names:
            return
        rows = EnvironmentVersion.objects.filter(
            environment__name__in=names,
            environment__workspace__in={run.workspace_id for run in runs},
        )
        keys = {_key(run) for run in runs}
        fields = ("pk", "environment__workspace_id", "environment__name", "number", "kind")
        versions = {
            pk: ((workspace, name, str(number)), kind)
            for pk, workspace, name, number, kind in rows.values_list(*fields)
            if (workspace, name, str(number)) in keys
        }
        glibc = glibc_capabilities(versions) if versions else {}
        for pk, (key, kind) in versions.items():
            self._capabilities[key] = KINDS[kind].capabilities | glibc.get(pk, frozenset())

    def capabilities(self, run: Run) -> frozenset[str]:
        """Returns the capabilities that nodes must have for the run."""
        key = _key(run)
        return self._curated.get(key[1]) or self._capabilities.get(key, frozenset())


def _key(run: Run) -> tuple[int, str, str]:
    # What an earlier version stored may not be readable.
    environment = run.spec.get("environment") if isinstance(run.spec, dict) else None
    if not isinstance(environment, dict):
        return run.workspace_id, "", ""
    return run.workspace_id, str(environment.get("name", "")), str(environment.get("version", ""))
