"""Reserved and maintenance windows: what is placed before and in them, and who may set them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from clusters.models import ClusterEvent, NodeReservation
from clusters.windows import node_windows
from jobs.models import Run
from jobs.scheduling import run_actions
from jobs.scheduling.run_preview import preview
from jobs.states import RunState
from tests.clusters.builders import cluster
from tests.jobs.builders import launched, node, spec
from tests.people import (
    api_client,
    client_of,
    make_contributor,
    make_operator,
    make_person,
    make_workspace,
    principal_of,
)
from trainhub_launch.errors import SpecError
from workspaces.access import Principal
from workspaces.models import AuditEvent
from workspaces.states import Role

pytestmark = pytest.mark.django_db
API = "/api/v1/clusters/local/windows/"
PAGE = "/clusters/local/windows/"
HOUR = timedelta(hours=1)


@pytest.fixture
def who(db: Any) -> Principal:
    return principal_of(make_contributor())


def keep(begin_h: float, end_h: float, *, name: str = "alpha", **more: str) -> NodeReservation:
    """Keeps the node free from and to these hours from now."""
    now = timezone.now()
    span = (now + begin_h * HOUR, now + end_h * HOUR)
    return node_windows.add(cluster("local"), [name], span, make_operator(), **more)[0]


def told(run: Run) -> str:
    run.refresh_from_db()
    return run.sentence if run.state == RunState.QUEUED else run.state


class TestPlacement:
    def test_a_run_that_may_reach_into_a_window_is_not_placed_there(self, who: Principal) -> None:
        node()
        window = keep(2, 4, note="new power supply")
        day = window.begins_at.astimezone(UTC)
        waiting, endless = launched(who, limits={"timeout_s": 7200}), launched(who)
        assert told(waiting).startswith(
            "Waiting for 1 node with 1 process slot: alpha is under maintenance from "
            f"{day:%Y-%m-%d %H:%M} to "
        )
        assert told(waiting).endswith("(new power supply), and the run may take until after its begin.")
        assert told(endless).endswith("the run has no time limit (limits.timeout_s) that ends before.")
        assert told(launched(who, limits={"timeout_s": 3600})) == RunState.PROVISIONING

    def test_another_node_is_taken(self, who: Principal) -> None:
        node("alpha")
        node("beta")
        keep(-1, 4)
        run = launched(who)
        assert told(run) == RunState.PROVISIONING
        assert run.attempts.get().placement[0]["name"] == "beta"

    def test_runs_are_placed_again_when_it_is_over(self, who: Principal) -> None:
        node()
        window = keep(-1, 4)
        run = launched(who)
        assert told(run).startswith("Waiting for")
        NodeReservation.objects.filter(pk=window.pk).update(ends_at=timezone.now())
        run_actions.launch_queued()
        assert told(run) == RunState.PROVISIONING

    def test_a_reserved_node_takes_runs_of_its_workspace_only(self, who: Principal) -> None:
        node()
        owner = principal_of(make_person("vic", Role.CONTRIBUTOR, make_workspace("vision")))
        keep(-1, 4, workspace="vision", note="secret project")
        other = launched(who)
        assert "alpha is reserved for another workspace" in told(other)
        assert "secret" not in told(other)
        assert told(launched(owner)) == RunState.PROVISIONING

    def test_a_run_that_waits_for_a_window_holds_up_nobody(self, who: Principal) -> None:
        node("alpha")
        node("beta")
        keep(-1, 4)
        gang = {
            "distribution": {
                "type": "pytorch",
                "process_count": 2,
                "node_count": 2,
                "communication_backend": "gloo",
            }
        }
        launched(who, **gang)
        assert told(launched(who)) == RunState.PROVISIONING

    def test_an_active_run_continues(self, who: Principal) -> None:
        node()
        run = launched(who)
        keep(-1, 4)
        run_actions.launch_queued()
        assert told(run) == RunState.PROVISIONING

    def test_the_preview_says_that_a_run_would_wait(self, who: Principal) -> None:
        node()
        keep(2, 4)
        texts = [item.message for item in preview(spec(who), who).findings]
        assert any("under maintenance" in text for text in texts)
        short = preview(spec(who, limits={"timeout_s": 600}), who)
        assert not any("under maintenance" in item.message for item in short.findings)
        assert short.plan is not None


class TestPage:
    def test_sets_and_ends(self) -> None:
        node()
        browser = client_of(make_operator())
        begin = datetime.now(UTC) + HOUR
        fields = {
            "nodes": ["alpha"],
            "begins_at": f"{begin:%Y-%m-%d %H:%M}",
            "ends_at": f"{begin + HOUR:%Y-%m-%d %H:%M}",
            "note": "fans",
        }
        page = browser.post(PAGE, fields, follow=True).content.decode()
        assert f"{begin:%Y-%m-%d %H:%M}" in page
        window = NodeReservation.objects.get()
        assert window.begins_at == begin.replace(second=0, microsecond=0)
        assert AuditEvent.objects.get(verb="node.window_set").subject == "alpha"
        assert ClusterEvent.objects.get(message__contains="under maintenance").actor == "olivia"
        browser.post(f"{PAGE}{window.pk}/end/")
        assert not NodeReservation.objects.exists()
        assert AuditEvent.objects.filter(verb="node.window_ended").count() == 1

    @pytest.mark.parametrize(
        "changes",
        [
            {"nodes": []},
            {"nodes": ["beta"]},
            {"ends_at": "2020-01-01 00:00"},
            {"begins_at": "soon"},
            {"workspace": "nobody"},
            {"note": "x" * 201},
            {"note": "a\0b"},
        ],
    )
    def test_refuses_what_cannot_be(self, changes: dict[str, Any]) -> None:
        node()
        now = datetime.now(UTC)
        fields = {
            "nodes": ["alpha"],
            "begins_at": f"{now:%Y-%m-%d %H:%M}",
            "ends_at": f"{now + HOUR:%Y-%m-%d %H:%M}",
        }
        answer = client_of(make_operator()).post(PAGE, {**fields, **changes})
        assert answer.status_code == 400
        assert not NodeReservation.objects.exists()


class TestApi:
    def test_sets_lists_and_ends(self) -> None:
        node()
        client = api_client(make_operator())
        begin = timezone.now() + HOUR
        body = {"nodes": ["alpha"], "begins_at": begin.isoformat(), "ends_at": (begin + HOUR).isoformat()}
        answer = client.post(API, {**body, "workspace": "default"}, content_type="application/json")
        assert answer.status_code == 201
        (row,) = client.get(API).json()
        assert (row["node"], row["workspace"], row["created_by"]) == ("alpha", "default", "olivia")
        assert client.delete(f"{API}{row['id']}/").status_code == 204
        assert client.get(API).json() == []

    @pytest.mark.parametrize(
        "changes",
        [
            {"nodes": ["beta"]},
            {"nodes": []},
            {"nodes": ["a\0"]},
            {"ends_at": "2020-01-01T00:00:00Z"},
            {"ends_at": "2999-01-01T00:00:00Z"},
            {"begins_at": "soon"},
            {"workspace": "nobody"},
            {"workspace": "a\0"},
        ],
    )
    def test_refuses_by_field(self, changes: dict[str, Any]) -> None:
        node()
        begin = timezone.now()
        body = {"nodes": ["alpha"], "begins_at": begin.isoformat(), "ends_at": (begin + HOUR).isoformat()}
        answer = api_client(make_operator()).post(API, {**body, **changes}, content_type="application/json")
        assert answer.status_code == 400
        assert next(iter(changes)) in answer.content.decode()
        assert not NodeReservation.objects.exists()


def test_a_workspace_that_may_not_use_the_cluster_gets_no_window() -> None:
    node()
    cluster("local").workspaces.add(make_workspace("vision"))
    make_workspace("speech")
    with pytest.raises(SpecError, match="no workspace that may use the cluster"):
        keep(1, 2, workspace="speech")
