"""Records which environments the nodes have prepared, and how long building them took."""

from __future__ import annotations

from datetime import datetime

from clusters.models import Node
from environments import catalog
from environments.curated import BY_NAME
from environments.models import EnvironmentVersion
from jobs.attempts.run_transitions import to_datetime
from jobs.models import AttemptNode, PreparedEnvironment, Run
from trainhub_launch.errors import SpecError
from trainhub_launch.log_names import ENVIRONMENT_LOG
from trainhub_launch.order import EnvironmentSpec
from trainhub_launch.report import AttemptFact
from trainhub_launch.spec_reader import read_spec
from trainhub_launch.states import Phase

# One of these follows the preparation: READY only in runs on several nodes.
AFTER_PREPARING = (Phase.READY, Phase.RUNNING)


def record_prepared(run: Run, part: AttemptNode, fact: AttemptFact, now: datetime) -> None:
    """Records that the part's node has prepared the environment of the run. Called once for each phase that
    the node reports for the first time; does nothing before the preparation is over."""
    is_prepared = any(phase in fact.phase_at for phase in AFTER_PREPARING)
    environment = _environment(run) if is_prepared else None
    if environment is None:
        return
    own = _own_version(run, environment)
    record_environment(part.node, environment.name, environment.version, own.pk if own else None, fact, now)


def record_environment(  # noqa: PLR0917 - what identifies an environment on a node
    node: Node, name: str, version: str, own_version_id: int | None, fact: AttemptFact, now: datetime
) -> None:
    """Records that the node has prepared the environment, for a run or for a build, as its `fact` says; and
    how long it took, if it was built for that."""
    ended = [fact.phase_at[phase] for phase in AFTER_PREPARING if phase in fact.phase_at]
    values: dict[str, object] = {"prepared_at": now}
    started = fact.phase_at.get(Phase.PREPARING)
    if ENVIRONMENT_LOG in fact.logs and started is not None:
        values |= {"built_at": to_datetime(min(ended)), "build_s": max(0.0, min(ended) - started)}
    PreparedEnvironment.objects.update_or_create(
        node=node, name=name, version=version, own_version_id=own_version_id, defaults=values
    )


def _environment(run: Run) -> EnvironmentSpec | None:
    """Returns the environment of the run, None for an interpreter of the node."""
    ref = read_spec(run.spec).environment
    if ref.name == catalog.SYSTEM:
        return None
    try:
        return catalog.find(ref, run.workspace)
    except SpecError:
        # A later version of the hub no longer has the environment of a run that an earlier one started.
        return None


def _own_version(run: Run, environment: EnvironmentSpec) -> EnvironmentVersion | None:
    """Returns the version if the environment is the workspace's own: other workspaces may have one of the
    same name."""
    if not environment.lock or environment.name in BY_NAME:
        return None
    return EnvironmentVersion.objects.get(
        environment__workspace=run.workspace, environment__name=environment.name, number=environment.version
    )
