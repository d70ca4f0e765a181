"""Clusters are created, changed, drained and deleted, through the API and on pages."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from clusters.models import Cluster, ClusterEvent, Node
from clusters.provisioning import machines, node_admin
from tests.clusters.builders import ready_node
from tests.clusters.provisioning.builders import Provider, growing, up, wanted
from tests.people import api_client, client_of, make_contributor, make_operator, make_owner, make_workspace
from workspaces.authentication.confirmation import CONFIRMED_AT, CONFIRMED_FOR_S

pytestmark = pytest.mark.django_db
JSON = "application/json"
GROWS = {"provider": "cloud", "min_nodes": 1, "max_nodes": 4, "node_gpus": 8, "idle_s": 300}


def post(**body: Any) -> Any:
    return api_client(make_operator()).post("/api/v1/clusters/", body, JSON)


def error(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["errors"][0]["field"]


class TestCreate:
    def test_answers_201_with_all_of_it(self, provider: Provider) -> None:
        make_workspace("speech")
        answer = post(name="gpu-cluster", description="H200 boxes", workspaces=["speech"], **GROWS)
        assert answer.status_code == 201, answer.content
        told = answer.json()
        assert told["settings"] == {
            **GROWS,
            "description": "H200 boxes",
            "workspaces": ["speech"],
            "node_gpu_model": "",
            "node_slots": 8,
            "low_priority": False,
            "avoid_unhealthy_gpus": True,
        }
        assert (told["nodes"], told["machines"], told["drained_at"]) == ([], [], None)
        assert told["events"][0]["kind"] == "made"

    def test_of_one_that_is_there_answers_409_and_changes_nothing(self) -> None:
        assert post(name="gpu-cluster", description="first").status_code == 201
        again = api_client(make_operator()).post(
            "/api/v1/clusters/", {"name": "gpu-cluster", "description": "second"}, JSON
        )
        assert again.status_code == 409
        assert "A cluster 'gpu-cluster' exists already" in again.json()["detail"]
        assert Cluster.objects.get(name="gpu-cluster").description == "first"

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({"name": "a/b"}, "name"),
            ({"name": "add-cluster"}, "name"),
            ({"name": ""}, "name"),
            ({"min_nodes": 3, "max_nodes": 2}, "min_nodes"),
            ({"min_nodes": -1}, "min_nodes"),
            ({"max_nodes": 10**6}, "max_nodes"),
            ({"max_nodes": 1, "provider": ""}, "provider"),
            ({"provider": "nowhere"}, "provider"),
            ({"node_gpus": 0, "node_slots": 0}, "node_slots"),
            ({"workspaces": ["nobody"]}, "workspaces"),
            ({"colour": "red"}, "colour"),
        ],
    )
    def test_names_the_field_that_is_wrong(
        self, provider: Provider, body: dict[str, Any], field: str
    ) -> None:
        assert error(post(**{"name": "gpu-cluster", **GROWS, **body})) == (400, field)
        assert not Cluster.objects.filter(name="gpu-cluster").exists()

    def test_a_provider_that_others_may_change_is_refused(self, provider: Provider) -> None:
        (provider.folder / "release").chmod(0o777)
        answer = post(name="gpu-cluster", **GROWS)
        assert error(answer) == (400, "provider")
        assert "can be changed by other accounts" in answer.json()["detail"]


class TestChange:
    def test_only_what_is_given(self, provider: Provider) -> None:
        post(name="gpu-cluster", **GROWS)
        answer = api_client(make_operator()).patch("/api/v1/clusters/gpu-cluster/", {"max_nodes": 6}, JSON)
        assert (answer.json()["settings"]["max_nodes"], answer.json()["settings"]["min_nodes"]) == (6, 1)
        assert answer.json()["events"][0]["message"] == "Changed by olivia: max_nodes is 6."

    def test_who_may_use_it(self) -> None:
        post(name="gpu-cluster")
        make_workspace("speech")
        client = api_client(make_operator())
        for workspaces in (["speech"], ["speech"], []):
            answer = client.patch("/api/v1/clusters/gpu-cluster/", {"workspaces": workspaces}, JSON)
            assert answer.json()["settings"]["workspaces"] == workspaces
        events = ClusterEvent.objects.filter(kind="changed")
        assert list(events.values_list("message", flat=True)) == [
            "Changed by olivia: workspaces are speech.",
            "Changed by olivia: workspaces are all.",
        ]

    def test_the_provider_not_while_it_has_machines(self, provider: Provider) -> None:
        wanted(growing())
        answer = api_client(make_operator()).patch(
            "/api/v1/clusters/grown/", {"provider": "", "max_nodes": 0}, JSON
        )
        assert error(answer) == (400, "provider")

    def test_a_provider_that_is_broken_now_does_not_keep_one_from_changing_the_rest(
        self, provider: Provider
    ) -> None:
        growing()
        (provider.folder / "release").unlink()
        assert (
            api_client(make_operator()).patch("/api/v1/clusters/grown/", {"max_nodes": 0}, JSON).status_code
            == 200
        )


class TestDrain:
    def test_and_resume(self) -> None:
        post(name="gpu-cluster")
        client = api_client(make_operator())
        assert client.post("/api/v1/clusters/gpu-cluster/drain/").json()["drained_at"]
        assert client.post("/api/v1/clusters/gpu-cluster/drain/").status_code == 200
        assert client.post("/api/v1/clusters/gpu-cluster/resume/").json()["drained_at"] is None
        assert list(ClusterEvent.objects.values_list("kind", flat=True)) == ["made", "drained", "resumed"]


class TestDelete:
    def test_an_empty_one_is_gone(self) -> None:
        post(name="gpu-cluster")
        client = api_client(make_operator())
        assert client.delete("/api/v1/clusters/gpu-cluster/").status_code == 204
        assert client.get("/api/v1/clusters/gpu-cluster/").status_code == 404
        assert not Cluster.objects.filter(name="gpu-cluster").exists()

    def test_one_with_nodes_says_which(self) -> None:
        ready_node("alpha")
        ready_node("beta")
        answer = api_client(make_operator()).delete("/api/v1/clusters/local/")
        assert answer.status_code == 409
        assert answer.json()["detail"] == "local still has 2 nodes: alpha and beta; remove them first."

    def test_one_whose_provider_is_at_work_waits(self, provider: Provider) -> None:
        wanted(growing())
        answer = api_client(make_operator()).delete("/api/v1/clusters/grown/")
        assert (answer.status_code, "1 machine that its provider" in answer.json()["detail"]) == (409, True)

    def test_what_ran_on_its_removed_nodes_keeps_its_history(self) -> None:
        node, who = ready_node("alpha"), make_operator()
        node_admin.remove(node, who)
        assert api_client(who).delete("/api/v1/clusters/local/").status_code == 204
        assert Node.objects.filter(pk=node.pk).exists()
        assert api_client(who).get("/api/v1/clusters/").json() == []
        again = api_client(who).post("/api/v1/clusters/", {"name": "local", "description": "anew"}, JSON)
        assert (again.status_code, again.json()["settings"]["description"]) == (201, "anew")


class TestAccess:
    def test_changes_are_for_operators(self) -> None:
        growing()
        client = api_client(make_owner())
        assert client.post("/api/v1/clusters/", {"name": "mine"}, JSON).status_code == 403
        assert client.patch("/api/v1/clusters/grown/", {"max_nodes": 9}, JSON).status_code == 403
        assert client.delete("/api/v1/clusters/grown/").status_code == 403
        assert client.post("/api/v1/clusters/grown/drain/").status_code == 403
        assert client.get("/api/v1/clusters/grown/").status_code == 200

    def test_one_of_other_workspaces_is_not_there(self) -> None:
        growing().workspaces.add(make_workspace("speech"))
        assert api_client(make_contributor()).get("/api/v1/clusters/grown/").status_code == 404
        assert api_client(make_operator()).get("/api/v1/clusters/grown/").status_code == 200

    @pytest.mark.parametrize("page", ["/clusters/add-cluster/", "/clusters/grown/edit/"])
    def test_pages_are_for_operators(self, page: str) -> None:
        growing()
        assert client_of(make_owner()).get(page).status_code == 403


class TestPages:
    def test_a_cluster_is_made_and_changed_by_forms(self, provider: Provider) -> None:
        client = client_of(make_operator())
        page = client.get("/clusters/add-cluster/").content.decode()
        assert 'value="cloud"' in page
        values = {**GROWS, "name": "gpu-cluster", "node_slots": 8}
        made = client.post("/clusters/add-cluster/", values, follow=True)
        assert "The cluster gpu-cluster was created." in made.content.decode()
        changed = client.post(
            "/clusters/gpu-cluster/edit/", {**values, "max_nodes": 7, "low_priority": "on"}, follow=True
        )
        assert "Low priority: its nodes can disappear" in changed.content.decode()
        assert Cluster.objects.get(name="gpu-cluster").max_nodes == 7

    def test_an_error_stands_beside_its_field(self, provider: Provider) -> None:
        values = {**GROWS, "name": "gpu-cluster", "node_slots": 8, "min_nodes": 5}
        client = client_of(make_operator())
        growing()
        for address in ("/clusters/add-cluster/", "/clusters/grown/edit/"):
            answer = client.post(address, values)
            assert answer.status_code == 400
            assert "is 5, more than max_nodes, 4" in answer.content.decode()
        again = client.post("/clusters/add-cluster/", {**values, "name": "grown", "min_nodes": 1})
        assert again.status_code == 400
        assert "A cluster &#x27;grown&#x27; exists already" in again.content.decode()

    def test_its_page_shows_machines_and_journal(self, provider: Provider) -> None:
        machine = wanted(growing(description="Cloud boxes"))
        node = up(provider, machine)
        page = client_of(make_contributor()).get("/clusters/grown/").content.decode()
        for words in (machine.name, f"/nodes/{node.name}/", "more node requested", "1 of at most 3"):
            assert words in page, words
        assert "cluster-edit" not in page
        assert "Delete the cluster" not in page

    def test_drain_resume_and_delete_are_buttons(self) -> None:
        growing(provider="")
        client = client_of(make_operator())
        assert (
            "takes no new runs"
            in client.post(reverse("cluster-drain", args=["grown"]), follow=True).content.decode()
        )
        assert (
            "takes runs again"
            in client.post(reverse("cluster-resume", args=["grown"]), follow=True).content.decode()
        )
        assert (
            "is deleted"
            in client.post(reverse("cluster-delete", args=["grown"]), follow=True).content.decode()
        )

    def test_it_is_deleted_only_by_who_typed_the_password_a_short_time_ago(self) -> None:
        growing(provider="")
        client = client_of(make_operator())
        session = client.session
        session[CONFIRMED_AT] -= CONFIRMED_FOR_S + 1
        session.save()
        answer = client.post(reverse("cluster-delete", args=["grown"]))
        assert (answer.status_code, "Confirm your password" in answer.content.decode()) == (403, True)
        assert Cluster.objects.filter(name="grown", deleted_at=None).exists()

    def test_a_refusal_is_shown(self, provider: Provider) -> None:
        wanted(growing())
        answer = client_of(make_operator()).post(reverse("cluster-delete", args=["grown"]), follow=True)
        assert "its provider is creating or releasing" in answer.content.decode()
        assert machines.active(growing()) != []

    def test_a_refresh_gets_machines_and_journal_alone(self, provider: Provider) -> None:
        machine = wanted(growing())
        part = client_of(make_contributor()).get("/clusters/grown/life/").content.decode()
        assert machine.name in part
        assert "<html" not in part

    def test_of_another_workspaces_cluster_nothing(self) -> None:
        growing().workspaces.add(make_workspace("speech"))
        assert client_of(make_contributor()).get("/clusters/grown/life/").status_code == 404
