"""Builds that nodes are ordered, played by hand."""

from __future__ import annotations

from environments.models import EnvironmentVersion
from jobs.builds import build_lifecycle
from jobs.builds.build_requests import request_builds
from jobs.builds.build_targets import BuildTarget, find_build_target
from jobs.models import EnvironmentBuild
from tests.environments.locks import locked
from tests.jobs.builders import Played
from trainhub_launch.log_names import ENVIRONMENT_LOG
from workspaces.access import Principal

LOGS = {ENVIRONMENT_LOG: 6}


def target_of(who: Principal, version: EnvironmentVersion | None = None) -> BuildTarget:
    version = version or locked(who)
    target = find_build_target(who.workspace, version.environment.name, str(version.number))
    assert target is not None
    return target


def ordered(who: Principal, *names: str, target: BuildTarget | None = None) -> list[EnvironmentBuild]:
    """Builds on these nodes, by default on all, each offered as the worker does."""
    builds = request_builds(who, target or target_of(who), names or None)
    for build in builds:
        build_lifecycle.offer_next(build.node_id)
    return builds


def taken_up(who: Principal, played: Played) -> EnvironmentBuild:
    """A build that its node has begun."""
    (build,) = ordered(who, played.node.name)
    played.claim(build)
    played.tell(build, "preparing")
    build.refresh_from_db()
    return build


def completed(played: Played, build: EnvironmentBuild) -> None:
    """Plays the rest of a build that its node has begun."""
    played.log(build, ENVIRONMENT_LOG, 0, b"built\n")
    played.tell(build, "running", logs=LOGS)
    played.tell(build, "done", logs=LOGS)
    build.refresh_from_db()


def state_of(build: EnvironmentBuild) -> tuple[str, str]:
    build.refresh_from_db()
    return build.state, build.reason
