"""Curated environments as a hub locks them: once for everybody, and what runs do meanwhile."""

from __future__ import annotations

import json

import pytest
from django.utils import timezone

from clusters.models import Node
from environments import made_versions
from environments.curated_versions import demand_curated
from environments.models import EnvironmentVersion
from environments.source_builds.draft import WheelDraft
from environments.states import VersionState
from jobs.builds.states import BuildState
from jobs.models import EnvironmentBuild
from jobs.node_orders import order_lifecycle
from jobs.scheduling import run_actions
from jobs.states import RunState
from jobs.version_builds import progress
from tests.environments.locks import locked_curated
from tests.jobs.builders import Played, launched, node
from tests.pages.builders import text_of
from tests.people import (
    client_of,
    make_contributor,
    make_operator,
    make_viewer,
    make_workspace,
    principal_of,
)
from trainhub_launch.machine import BUILDS, WHEEL_BUILDS
from workspaces.access import Principal

pytestmark = pytest.mark.django_db
NAME, HOROVOD = "TrainHub-PyTorch-2.13", "TrainHub-Horovod-0.28"


def able(name: str, cluster: str = "local") -> Node:
    """A node that can build wheels."""
    made = node(name, cluster=cluster)
    Node.objects.filter(pk=made.pk).update(capabilities=f"{BUILDS} {WHEEL_BUILDS}")
    return made


def seen(name: str) -> str:
    return text_of(client_of(make_viewer()), f"/environments/{name}/")


def fail(version: EnvironmentVersion, failure: str) -> None:
    EnvironmentVersion.objects.filter(pk=version.pk).update(
        state=VersionState.FAILED, failure=failure, resolved_at=timezone.now()
    )


class TestRuns:
    def test_wait_until_it_is_locked_and_then_get_the_lock(self, who: Principal) -> None:
        alpha = Played(node("alpha"))
        run = launched(who, environment={"name": NAME})
        run.refresh_from_db()
        assert run.state == RunState.QUEUED
        assert run.facts["detail"] == (
            "The hub finds the packages of TrainHub-PyTorch-2.13 first, once for all runs."
        )
        version = locked_curated(NAME)
        run_actions.launch_queued()
        order = alpha.claim(run)
        assert (order.environment.name, order.environment.lock) == (NAME, version.lock)

    def test_of_two_workspaces_have_the_same_version(self, who: Principal) -> None:
        node("alpha")
        launched(who, environment={"name": NAME})
        launched(principal_of(make_contributor()), environment={"name": NAME})
        assert EnvironmentVersion.objects.count() == 1
        version = EnvironmentVersion.objects.get()
        assert (version.environment.workspace, version.number, version.python) == (None, 1, "3.11")

    def test_fail_with_the_reason_and_the_next_one_tries_again(self, who: Principal) -> None:
        node("alpha")
        first = launched(who, environment={"name": NAME})
        fail(demand_curated(NAME), "The index does not answer.")
        run_actions.launch_queued()
        first.refresh_from_db()
        assert first.state == RunState.FAILED
        assert "could not be made (The index does not answer)" in first.facts["detail"]
        second = launched(who, environment={"name": NAME})
        second.refresh_from_db()
        assert second.state == RunState.QUEUED
        assert demand_curated(NAME).state == VersionState.RESOLVING


class TestBuilding:
    """By a node, because packages have no wheel."""

    @pytest.fixture
    def version(self) -> EnvironmentVersion:
        able("secret", cluster="theirs").cluster.workspaces.add(make_workspace("theirs"))
        version = demand_curated(HOROVOD)
        made_versions.await_node(version.pk, json.dumps(WheelDraft("", "", ()).to_json()))
        progress.continue_version(version.pk)
        return demand_curated(HOROVOD)

    def test_happens_on_a_node_that_is_open_to_all_and_everybody_sees_it(
        self, who: Principal, version: EnvironmentVersion
    ) -> None:
        assert not EnvironmentBuild.objects.exists()
        assert "It waits for a node: there is none" in seen(HOROVOD)
        able("alpha")
        progress.continue_version(version.pk)
        build = EnvironmentBuild.objects.get()
        assert (build.node.name, build.workspace) == ("alpha", None)
        assert f"/environments/{HOROVOD}/builds/{build.pk}/" in seen(HOROVOD)
        assert EnvironmentBuild.visible_to(make_workspace("elsewhere")).get() == build
        assert client_of(make_viewer()).get(f"/environments/{HOROVOD}/builds/{build.pk}/").status_code == 200
        run = launched(who, environment={"name": HOROVOD})
        run.refresh_from_db()
        assert "A node builds packages of TrainHub-Horovod-0.28 first" in run.facts["detail"]

    def test_is_ordered_again_for_a_run_that_comes_after_it_has_failed(
        self, who: Principal, version: EnvironmentVersion
    ) -> None:
        alpha = Played(able("alpha"))
        progress.continue_version(version.pk)
        first = EnvironmentBuild.objects.get()
        order_lifecycle.finish(first, BuildState.FAILED, "There is no cmake.", timezone.now())
        progress.continue_version(version.pk)
        assert demand_curated(HOROVOD).failure == "There is no cmake."
        launched(who, environment={"name": HOROVOD})
        assert demand_curated(HOROVOD).state == VersionState.RESOLVING
        # The worker resolves it.
        EnvironmentVersion.objects.filter(pk=version.pk).update(started_at=timezone.now())
        made_versions.await_node(version.pk, json.dumps(WheelDraft("", "", ()).to_json()))
        progress.continue_version(version.pk)
        assert demand_curated(HOROVOD).state == VersionState.BUILDING
        second = EnvironmentBuild.objects.exclude(pk=first.pk).get()
        assert (second.node, second.ended_at) == (alpha.node, None)

    def test_is_canceled_by_operators_alone(self, version: EnvironmentVersion) -> None:
        able("alpha")
        progress.continue_version(version.pk)
        build = EnvironmentBuild.objects.get()
        address = f"/environments/{HOROVOD}/builds/{build.pk}/"
        contributor, operator = client_of(make_contributor()), client_of(make_operator())
        assert "Cancel" not in text_of(contributor, address)
        assert contributor.post(f"{address}cancel/").status_code == 403
        assert operator.post(f"{address}cancel/").status_code == 302
        build.refresh_from_db()
        assert build.state == BuildState.CANCELED


class TestPage:
    def test_tells_how_far_it_is(self, who: Principal) -> None:
        viewer, address = client_of(make_viewer()), f"/environments/{NAME}/"
        assert "Not needed yet" in text_of(viewer, address)
        version = demand_curated(NAME)
        assert 'hx-trigger="every 2s"' in text_of(viewer, address)
        fail(version, "The index does not answer.")
        assert "The index does not answer. The next run or build tries it again." in text_of(viewer, address)
        locked_curated(NAME)
        assert "Locked" in text_of(viewer, address)
