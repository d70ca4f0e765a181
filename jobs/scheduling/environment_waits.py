"""Runs whose curated environment this hub has not locked yet: what they wait for, and when they cannot
start."""

from __future__ import annotations

from environments.curated import BY_NAME
from environments.curated_versions import demand_curated, resolve_again
from environments.models import EnvironmentVersion
from environments.states import VersionState
from jobs.models import Run
from jobs.version_builds.making_nodes import waiting_reason
from trainhub_launch.scheduler.rejections import Refusal
from trainhub_launch.spec import EnvironmentRef

FIELD = "environment.name"


class EnvironmentWaits:
    """Remembers the answers: it lives for one pass over the queue."""

    def __init__(self) -> None:
        self._versions: dict[str, EnvironmentVersion] = {}
        self._build_sentences: dict[str, str] = {}

    def refusal(self, run: Run, ref: EnvironmentRef) -> Refusal | None:
        """Returns why the run cannot start yet, or never; None if its environment is ready to be installed.
        The first run with an environment has the hub lock it, and so has one that was submitted after that
        has failed."""
        if ref.name not in BY_NAME:
            return None
        version = self._versions.get(ref.name) or demand_curated(ref.name)
        if version.state == VersionState.FAILED and _is_older(version, run):
            resolve_again(version)
            version.state = VersionState.RESOLVING
        self._versions[ref.name] = version
        if version.is_locked:
            return None
        name, page = ref.name, f"/environments/{ref.name}/"
        if version.state == VersionState.FAILED:
            reason = version.failure.rstrip(".")
            return Refusal(f"{name} could not be made ({reason}); see {page}.", FIELD, permanent=True)
        if version.state == VersionState.BUILDING:
            if name not in self._build_sentences:
                why = waiting_reason(version) or f"Its log is at {page}."
                self._build_sentences[name] = (
                    f"A node builds packages of {name} first, once for all runs. {why}"
                )
            return Refusal(self._build_sentences[name], FIELD, permanent=False)
        return Refusal(
            f"The hub finds the packages of {name} first, once for all runs.", FIELD, permanent=False
        )


def _is_older(version: EnvironmentVersion, run: Run) -> bool:
    """Returns whether the version had failed before the run was submitted."""
    return version.resolved_at is not None and version.resolved_at < run.created_at
