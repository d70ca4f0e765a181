"""Operators drain, resume, monitor and remove nodes, and each action is journaled."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from clusters.enrolment.node_tokens import enrol_node, node_for_token
from clusters.leases import acquire
from clusters.models import Gpu, Lease, Node
from clusters.offers import nodes_of
from clusters.provisioning import machines, node_admin
from clusters.provisioning.node_admin import NodeBusy
from tests.clusters.builders import cluster, gpus_wanted, ready_node, workspace
from tests.clusters.provisioning.builders import Provider, up, wanted
from tests.people import api_client, client_of, make_contributor, make_operator, make_owner
from workspaces.authentication.confirmation import CONFIRMED_AT, CONFIRMED_FOR_S
from workspaces.models import AuditEvent

pytestmark = pytest.mark.django_db
JSON = "application/json"


def hold(node: Node) -> Lease:
    acquire(cluster(), gpus_wanted(1), holder="r" * 32, attempt=1, label="run 41", workspace=workspace())
    return Lease.objects.get()


def journal(node: Node) -> list[tuple[str, str]]:
    return list(node.events.exclude(kind="heard").values_list("kind", "message"))


class TestDrain:
    def test_takes_no_new_runs_until_it_is_resumed(self) -> None:
        node, who = ready_node("alpha", "GPU-a"), make_operator()
        node_admin.drain(node, who)
        assert nodes_of(cluster(), workspace())[0].closed == "is drained"
        node_admin.resume(node, who)
        assert nodes_of(cluster(), workspace())[0].closed == ""
        assert journal(node) == [
            ("drained", f"Drained by {who}: it takes no new runs."),
            ("resumed", f"Resumed by {who}: it takes runs again."),
        ]

    def test_twice_is_once(self) -> None:
        node, who = ready_node("alpha"), make_operator()
        node_admin.drain(node, who)
        node_admin.drain(node, who)
        assert len(journal(node)) == 1

    def test_one_that_its_provider_releases_is_not_resumed(self, provider: Provider) -> None:
        machine = wanted()
        node = up(provider, machine)
        machines.release(machine, "idle", timezone.now())
        answer = api_client(make_operator()).post(f"/api/v1/nodes/{node.name}/resume/")
        assert answer.status_code == 409
        assert "is being released by its provider and no longer takes runs" in answer.json()["detail"]
        assert Node.objects.get(pk=node.pk).drained_at is not None

    def test_the_page_says_when_nothing_runs_there_any_more(self) -> None:
        node, who = ready_node("alpha", "GPU-a"), make_operator()
        lease = hold(node)
        node_admin.drain(node, who)
        page = client_of(who).get("/nodes/alpha/").content.decode()
        assert "Draining since" in page
        lease.delete()
        assert "Drained: nothing runs here." in client_of(who).get("/nodes/alpha/").content.decode()


class TestMarks:
    def test_are_set_and_removed_and_the_journal_says_by_whom(self) -> None:
        node, who = ready_node("alpha"), make_operator()
        client = api_client(who)
        for verb in ("monitor-only", "low-priority"):
            for is_on in (True, False):
                client.post(f"/api/v1/nodes/alpha/{verb}/", {"on": is_on}, JSON)
        assert [message for _, message in journal(node)] == [
            f"Made monitor-only by {who}: it never takes a run.",
            f"Opened to runs by {who}.",
            f"Marked as low-priority by {who}: it may disappear.",
            f"Low priority removed by {who}.",
        ]


class TestRemove:
    def test_leaves_the_lists_and_is_refused_and_its_history_stays(self) -> None:
        _, token = enrol_node("local", "alpha")
        node, who = ready_node("beta", "GPU-a"), make_operator()
        node_admin.remove(node, who)
        node.refresh_from_db()
        assert node.revoked_at is not None
        assert node.removed_at is not None
        assert not Gpu.objects.get(pk="GPU-a").present
        answer = api_client(who).get("/api/v1/nodes/")
        assert [item["name"] for item in answer.json()] == ["alpha"]
        assert "beta" not in client_of(who).get("/clusters/").content.decode()
        assert "Removed from the lists" in client_of(who).get("/nodes/beta/").content.decode()
        assert node_for_token(token) is not None
        assert AuditEvent.objects.filter(verb="node.removed", subject="beta").exists()

    def test_is_refused_while_something_is_held_there(self) -> None:
        node = ready_node("alpha", "GPU-a")
        hold(node)
        with pytest.raises(NodeBusy, match="is held by 1 run; drain it and wait, or remove it by force"):
            node_admin.remove(node, make_operator())
        assert Node.objects.get().removed_at is None

    def test_by_force_it_goes_all_the_same(self) -> None:
        node, who = ready_node("alpha", "GPU-a"), make_operator()
        hold(node)
        node_admin.remove(node, who, force=True)
        assert journal(node)[-1] == ("removed", f"Removed by {who}, with 1 run on it.")

    def test_its_name_may_join_again(self) -> None:
        node, who = ready_node("alpha", "GPU-a"), make_operator()
        node_admin.drain(node, who)
        node_admin.remove(node, who)
        again = ready_node("alpha", "GPU-a", at=timezone.now() + timedelta(seconds=5))
        assert (again.pk, again.removed_at, again.drained_at) == (node.pk, None, None)
        assert nodes_of(cluster(), workspace())[0].gpus == ("GPU-a",)

    def test_a_removed_one_is_left_alone(self) -> None:
        node, who = ready_node("alpha"), make_operator()
        node_admin.remove(node, who)
        with pytest.raises(NodeBusy, match="is removed"):
            node_admin.drain(node, who)


class TestApi:
    @pytest.mark.parametrize("verb", ["drain", "resume", "remove", "monitor-only", "low-priority"])
    def test_is_for_operators(self, verb: str) -> None:
        ready_node("alpha")
        assert (
            api_client(make_owner()).post(f"/api/v1/nodes/alpha/{verb}/", {"on": True}, JSON).status_code
            == 403
        )
        assert (
            api_client(make_operator()).post(f"/api/v1/nodes/nobody/{verb}/", {"on": True}, JSON).status_code
            == 404
        )

    def test_answers_how_the_node_stands_now(self) -> None:
        ready_node("alpha")
        client = api_client(make_operator())
        assert client.post("/api/v1/nodes/alpha/drain/").json()["drained_at"]
        assert client.post("/api/v1/nodes/alpha/resume/").json()["drained_at"] is None
        assert (
            client.post("/api/v1/nodes/alpha/monitor-only/", {"on": True}, JSON).json()["monitor_only"]
            is True
        )
        assert (
            client.post("/api/v1/nodes/alpha/low-priority/", {"on": True}, JSON).json()["low_priority"]
            is True
        )
        assert client.post("/api/v1/nodes/alpha/remove/").json()["removed_at"]
        again = client.post("/api/v1/nodes/alpha/drain/")
        assert (again.status_code, "is removed" in again.json()["detail"]) == (409, True)

    def test_needs_to_be_told_what(self) -> None:
        ready_node("alpha")
        answer = api_client(make_operator()).post("/api/v1/nodes/alpha/low-priority/", {}, JSON)
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "on")


class TestButtons:
    @pytest.mark.parametrize(
        "verb",
        ["drain", "resume", "monitor-only", "open", "low-priority", "lasting", "remove", "remove-by-force"],
    )
    def test_are_for_operators_and_lead_back(self, verb: str) -> None:
        ready_node("alpha")
        assert client_of(make_contributor()).post(reverse(f"node-{verb}", args=["alpha"])).status_code == 403
        assert client_of(make_operator()).get(reverse(f"node-{verb}", args=["alpha"])).status_code == 405
        answer = client_of(make_operator()).post(reverse(f"node-{verb}", args=["alpha"]), follow=True)
        assert "alpha" in answer.content.decode()

    def test_it_is_removed_only_by_who_typed_the_password_a_short_time_ago(self) -> None:
        ready_node("alpha")
        client = client_of(make_operator())
        session = client.session
        session[CONFIRMED_AT] -= CONFIRMED_FOR_S + 1
        session.save()
        answer = client.post(reverse("node-remove", args=["alpha"]))
        assert (answer.status_code, "Confirm your password" in answer.content.decode()) == (403, True)
        assert Node.objects.get().removed_at is None

    def test_a_refusal_is_shown(self) -> None:
        hold(ready_node("alpha", "GPU-a"))
        answer = client_of(make_operator()).post(reverse("node-remove", args=["alpha"]), follow=True)
        assert "is held by 1 run" in answer.content.decode()

    def test_others_see_none(self) -> None:
        ready_node("alpha")
        assert "node-drain" not in client_of(make_contributor()).get("/nodes/alpha/").content.decode()
