"""Curated environments as a hub locks them: once for everybody, and what runs do meanwhile."""

from __future__ import annotations

import pytest
from django.utils import timezone

from environments.curated_versions import demand_curated
from environments.models import EnvironmentVersion
from environments.states import VersionState
from jobs.scheduling import run_actions
from jobs.states import RunState
from tests.environments.locks import locked_curated
from tests.jobs.builders import Played, launched, node
from tests.pages.builders import text_of
from tests.people import client_of, make_contributor, make_viewer, principal_of
from workspaces.access import Principal

pytestmark = pytest.mark.django_db
NAME = "TrainHub-PyTorch-2.13"


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
            "The hub finds the packages of TrainHub-PyTorch-2.13 1 first, once for all runs."
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
