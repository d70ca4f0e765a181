from __future__ import annotations

import pytest
from django.test import Client
from django.utils.html import escape

from clusters.models import Cluster
from jobs.scheduling import run_actions
from tests.jobs import builders
from tests.people import client_of, make_contributor, make_person, make_viewer, make_workspace, principal_of
from workspaces.states import Role

pytestmark = pytest.mark.django_db


def queue_of(client: Client, cluster: str = "local") -> str:
    response = client.get(f"/clusters/{cluster}/queue/")
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


class TestQueue:
    def test_tells_who_waits_for_what_and_why_in_the_order_of_starting(self) -> None:
        builders.node("alpha", slots=2)
        who = principal_of(make_contributor())
        builders.launched(who, distribution=builders.processes(2))
        first = builders.queued(who, distribution=builders.processes(2))
        second = builders.queued(who)
        run_actions.launch_queued()
        page = queue_of(client_of(make_viewer()))
        assert "2 waiting runs, in this order" in page
        assert "2 process slots" in page
        assert page.index(f"/runs/{first.number}/") < page.index(f"/runs/{second.number}/")
        first.refresh_from_db()
        assert first.sentence
        assert escape(first.sentence) in page

    def test_of_another_workspaces_run_only_its_place_is_told(self) -> None:
        other = make_workspace("other")
        stranger = make_person("nora", Role.CONTRIBUTOR, other)
        run = builders.queued(principal_of(stranger))
        page = queue_of(client_of(make_viewer()))
        assert "a run of another workspace" in page
        assert f"/runs/{run.number}/" not in page

    def test_an_empty_one_says_so(self) -> None:
        Cluster.objects.create(name="local")
        assert "no runs are waiting" in queue_of(client_of(make_viewer()))

    def test_of_a_cluster_that_one_may_not_use_there_is_nothing(self) -> None:
        closed = Cluster.objects.create(name="closed")
        closed.workspaces.add(make_workspace("other"))
        assert client_of(make_viewer()).get("/clusters/closed/queue/").status_code == 404
