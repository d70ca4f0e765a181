"""Quotas of workspaces and people: what waits, what is refused, and what goes on."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from clusters.models import Cluster, Lease, Quota
from jobs.models import Run
from jobs.quotas import quota_admin
from jobs.scheduling import queue_placement, run_actions
from jobs.scheduling.submission import SubmitRefused
from jobs.states import RunState
from tests.api.contract import ApiClient
from tests.concurrency import run_at_once
from tests.jobs.builders import launched, node, queued, spec
from tests.people import client_of, make_person, make_workspace, principal_of, token_of
from trainhub_launch.errors import SpecError
from workspaces.access import Principal
from workspaces.models import AuditEvent, User
from workspaces.states import Role

pytestmark = pytest.mark.django_db
API = "/api/v1/quotas/"


def member(name: str, slug: str = "vision", role: Role = Role.CONTRIBUTOR) -> Principal:
    return principal_of(make_person(name, role, make_workspace(slug)))


@pytest.fixture
def vic(db: Any) -> Principal:
    return member("vic")


@pytest.fixture
def operator(vic: Principal) -> User:
    person = member("olga").user
    person.is_operator = True
    person.save(update_fields=["is_operator"])
    return person


def gpus(count: int) -> dict[str, Any]:
    distribution = {"type": "pytorch", "process_count": count, "node_count": 1}
    return {"distribution": distribution, "resources": {"gpus_per_node": count}}


def limit(who: Principal, scope: str = "workspace", person: str = "", **limits: float) -> None:
    quota_admin.set_quota(who.workspace, scope, person, limits, who.user)


def told(run: Run) -> str:
    run.refresh_from_db()
    return run.sentence if run.state == RunState.QUEUED else run.state


class TestGpus:
    def test_a_run_beyond_them_waits_and_lets_others_pass(self, vic: Principal) -> None:
        node(gpus=4)
        limit(vic, gpus=2)
        first, second = launched(vic, **gpus(2)), launched(vic, **gpus(1))
        other = launched(member("sam", "speech"), **gpus(2))
        assert (told(first), told(other)) == (RunState.PROVISIONING, RunState.PROVISIONING)
        assert told(second) == (
            "Waiting for the quota of workspace vision, 2 GPUs at once: fewer than 1 of them are left."
        )
        run_actions.cancel(first, vic.user)
        run_actions.launch_queued()
        assert told(second) == RunState.PROVISIONING

    def test_a_run_that_needs_more_than_the_limit_is_refused(self, vic: Principal) -> None:
        node(gpus=4)
        limit(vic, gpus=2)
        with pytest.raises(SubmitRefused, match="the quota of workspace vision is 2 at once") as refused:
            queued(vic, **gpus(3))
        assert refused.value.field == "resources.gpus_per_node"

    def test_hold_for_each_person_and_for_one_person_before_that(self, vic: Principal) -> None:
        node(gpus=8)
        limit(vic, "people", gpus=1)
        vera = member("vera")
        limit(vic, "person", "vera", gpus=3)
        runs = [launched(vic, **gpus(1)), launched(vera, **gpus(3))]
        assert [told(run) for run in runs] == [RunState.PROVISIONING] * 2
        assert "vic in workspace vision, 1 GPU at once" in told(launched(vic, **gpus(1)))
        assert "vera in workspace vision, 3 GPUs at once" in told(launched(vera, **gpus(1)))

    def test_count_in_all_clusters(self, vic: Principal) -> None:
        node("alpha", gpus=2)
        node("beta", cluster="other", gpus=2)
        limit(vic, gpus=2)
        launched(vic, **gpus(2))
        elsewhere = gpus(1) | {"resources": {"cluster": "other", "gpus_per_node": 1}}
        assert told(launched(vic, **elsewhere)).startswith("Waiting for the quota")

    def test_runs_without_gpus_do_not_count(self, vic: Principal) -> None:
        node(gpus=1)
        limit(vic, gpus=0, gpu_hours=0)
        assert told(launched(vic)) == RunState.PROVISIONING

    def test_a_lowered_quota_stops_nothing_and_says_so(self, vic: Principal) -> None:
        node(gpus=4)
        running, waiting = launched(vic, **gpus(3)), launched(vic, **gpus(3))
        row = quota_admin.set_quota(vic.workspace, "workspace", "", {"gpus": 2}, vic.user)
        assert row is not None
        assert row.note == (
            "Workspace vision holds 3 GPUs, more than 2; nothing is stopped, only new runs wait or are "
            "refused."
        )
        run_actions.launch_queued()
        assert told(running) == RunState.PROVISIONING
        assert "the quota of workspace vision is 2 at once" in told(waiting)


class TestHours:
    def test_of_this_month_are_used_up_and_current_runs_continue(self, vic: Principal) -> None:
        node(gpus=4)
        limit(vic, gpu_hours=1)
        running = launched(vic, **gpus(2))
        now = timezone.now()
        begin = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        Lease.objects.update(created_at=max(begin, now - timedelta(hours=2)))
        if now - begin > timedelta(hours=1):
            later = launched(vic, **gpus(1))
            assert told(later) == (
                "Waiting for the next month, or a higher quota: workspace vision has used all of its "
                "1 GPU-hours of this month."
            )
        assert told(running) == RunState.PROVISIONING


class TestWaitingRuns:
    def test_beyond_them_are_refused(self, vic: Principal) -> None:
        node(gpus=1)
        launched(vic, **gpus(1))
        limit(vic, "people", waiting_runs=2)
        for _ in range(2):
            queued(vic, **gpus(1))
        with pytest.raises(SubmitRefused, match="vic in workspace vision has 2 waiting runs"):
            queued(vic, **gpus(1))
        assert queued(member("vera"), **gpus(1)).state == RunState.QUEUED

    def test_zero_lets_nothing_in(self, vic: Principal) -> None:
        node(gpus=1)
        limit(vic, waiting_runs=0)
        with pytest.raises(SubmitRefused, match="its quota is 0"):
            queued(vic)


@pytest.mark.django_db(transaction=True)
class TestAtTheSameTime:
    def test_two_clusters_do_not_exceed_a_quota_together(self, vic: Principal) -> None:
        runs = []
        for name in ("one", "two", "three"):
            node(f"in-{name}", cluster=name, gpus=2)
            resources = {"cluster": name, "gpus_per_node": 2}
            runs += [queued(vic, distribution=gpus(2)["distribution"], resources=resources)]
        limit(vic, gpus=3)
        run_at_once(
            *(lambda name=name: queue_placement.place_queued([name]) for name in ("one", "two", "three"))
        )
        assert sorted(told(run) == RunState.PROVISIONING for run in runs) == [False, False, True]

    def test_many_submissions_do_not_exceed_a_quota_together(self, vic: Principal) -> None:
        Cluster.objects.create(name="local")
        limit(vic, waiting_runs=2)
        wanted = spec(vic)

        refusals: list[str] = []

        def submit() -> None:
            try:
                run_actions.submit(wanted, vic)
            except SubmitRefused as refused:
                refusals.append(refused.message)

        run_at_once(*[submit] * 5)
        assert Run.objects.count() == 2
        assert len(refusals) == 3
        assert all("its quota is 2" in message for message in refusals)


class TestPage:
    def test_sets_removes_and_records(self, vic: Principal, operator: User) -> None:
        browser = client_of(operator)
        fields = {"scope": "workspace", "gpus": "4", "gpu_hours": "2.5", "waiting_runs": ""}
        page = browser.post("/quotas/", fields, follow=True).content.decode()
        assert "The quota was set." in page
        assert "0 of 4" in page
        event = AuditEvent.objects.get(verb="quota.changed")
        limits = {"gpus": 4, "gpu_hours": 2.5, "waiting_runs": None, "disk_gib": None}
        assert event.detail == {"scope": "workspace", **limits}
        assert "0.0 of 2.5" in client_of(vic.user).get("/quotas/").content.decode()
        browser.post("/quotas/", {"scope": "workspace"})
        assert not Quota.objects.exists()

    @pytest.mark.parametrize(
        "fields",
        [
            {"scope": "workspace", "gpus": "-1"},
            {"scope": "workspace", "gpu_hours": "nan"},
            {"scope": "workspace", "gpus": "1e9"},
            {"scope": "person", "person": "nobody", "gpus": "1"},
            {"scope": "person", "person": "a\0b", "gpus": "1"},
            {"scope": "workspace", "person": "vic", "gpus": "1"},
            {"scope": "other", "gpus": "1"},
        ],
    )
    def test_refuses_what_is_no_quota(self, operator: User, fields: dict[str, str]) -> None:
        answer = client_of(operator).post("/quotas/", fields)
        assert answer.status_code == 400
        assert not Quota.objects.exists()

    def test_of_another_workspace_is_for_operators(self, vic: Principal, operator: User) -> None:
        make_workspace("speech")
        assert client_of(vic.user).get("/quotas/?workspace=speech").status_code == 403
        assert client_of(operator).get("/quotas/?workspace=speech").status_code == 200
        assert client_of(vic.user).post("/quotas/", {"scope": "workspace"}).status_code == 403


class TestApi:
    def client(self, who: Principal) -> ApiClient:
        return ApiClient(headers={"authorization": f"Bearer {token_of(who.user, who.workspace)}"})

    def test_operators_set_what_members_read(self, vic: Principal, operator: User) -> None:
        client = self.client(principal_of(operator))
        body = {"scope": "person", "person": "vic", "gpus": 3}
        (row,) = client.put(API, body, content_type="application/json").json()
        assert (row["person"], row["gpus"], row["gpu_hours"], row["gpus_held"]) == ("vic", 3, None, 0)
        client.put(API, {"scope": "person", "person": "olga", "gpus": 1}, content_type="application/json")
        assert self.client(vic).get(API).json() == [row]
        assert len(client.get(API).json()) == 2
        assert self.client(vic).put(API, body, content_type="application/json").status_code == 403

    def test_tells_the_disk_that_is_used(self, vic: Principal, operator: User) -> None:
        body = {"scope": "workspace", "disk_gib": 1.5}
        answer = self.client(principal_of(operator)).put(API, body, content_type="application/json")
        assert [(row["disk_gib"], row["disk_bytes_used"]) for row in answer.json()] == [(1.5, 0)]

    @pytest.mark.parametrize(
        "body",
        [
            {"scope": "workspace", "gpu": 1},
            {"scope": "workspace", "disk_gib": -1},
            {"scope": "workspace", "gpus": 1.5},
            {"scope": "workspace", "waiting_runs": -1},
            {"scope": "person", "gpus": 1},
            {"gpus": 1},
            [],
        ],
    )
    def test_refuses_by_field(self, operator: User, body: Any) -> None:
        answer = self.client(principal_of(operator)).put(API, body, content_type="application/json")
        assert answer.status_code == 400
        assert not Quota.objects.exists()


def test_a_person_of_another_workspace_is_refused_by_name(vic: Principal) -> None:
    member("sam", "speech")
    with pytest.raises(SpecError, match="there is no 'sam' in the workspace vision"):
        limit(vic, "person", "sam", gpus=1)
