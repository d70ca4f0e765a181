"""Clusters that are partitions of a Slurm, through the API. Here is no Slurm, so nothing asks one."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from clusters.enrolment.node_tokens import enrol_node
from clusters.models import Cluster, Node, SlurmPartition, UnixAccount
from tests.clusters.slurm_partitions.builders import make_allocation, make_partition
from tests.people import api_client, make_contributor, make_operator, make_owner, make_viewer, make_workspace
from workspaces.models import AuditEvent

pytestmark = pytest.mark.django_db
JSON = "application/json"
DEFAULTS = {
    "partition": "main",
    "command_host": "",
    "host_key": "",
    "login_group": "",
    "rest_url": "",
    "rest_ca": "",
    "relay_host": "",
    "relay_port": 0,
    "account": "",
    "qos": "",
    "default_time_s": 3600,
    "max_time_s": 604800,
    "gres": {"": "gpu"},
    "shared_folder": "",
    "node_cache": "",
    "python": "python3",
}


def post(slurm: Any = None, **body: Any) -> Any:
    values = {"name": "hpc", "kind": "slurm", "slurm": {"partition": "main"} if slurm is None else slurm}
    return api_client(make_operator()).post("/api/v1/clusters/", {**values, **body}, JSON)


def patch(**body: Any) -> Any:
    return api_client(make_operator()).patch("/api/v1/clusters/hpc/", body, JSON)


def errors(answer: Any) -> dict[str, str]:
    assert answer.status_code == 400, answer.content
    return {item["field"]: item["message"] for item in answer.json()["errors"]}


class TestCreate:
    def test_answers_with_all_settings(self) -> None:
        answer = post()
        assert answer.status_code == 201, answer.content
        body = answer.json()
        assert (body["kind"], body["slurm"]) == ("slurm", DEFAULTS)
        nothing_known = {"has_accounting": None, "trouble": "", "trouble_since": None, "relay_trouble": ""}
        assert body["slurm_status"] == nothing_known
        assert body["settings"]["avoid_unhealthy_gpus"] is False

    def test_stores_what_is_given(self) -> None:
        given = {
            "partition": "gpu",
            "account": "team",
            "qos": "long",
            "default_time_s": 600,
            "max_time_s": 7200,
            "gres": {"": "gpu", "A100": "gpu:a100"},
            "shared_folder": "/shared/trainhub",
            "python": "/opt/python/bin/python3.11",
        }
        assert post(given).json()["slurm"] == {**DEFAULTS, **given}

    def test_a_cluster_of_nodes_has_no_partition(self) -> None:
        answer = api_client(make_operator()).post("/api/v1/clusters/", {"name": "own"}, JSON)
        body = answer.json()
        assert (body["kind"], body["slurm"], body["slurm_status"]) == ("agent", None, None)

    @pytest.mark.parametrize(
        ("slurm", "field", "words"),
        [
            ({}, "slurm.partition", "Enter the name of a partition"),
            ({"partition": "a b"}, "slurm.partition", "Enter the name of a partition"),
            ({"partition": "-p"}, "slurm.partition", "Enter the name of a partition"),
            ({"partition": "main", "account": "a;b"}, "slurm.account", "Only letters"),
            ({"partition": "main", "qos": "--qos"}, "slurm.qos", "Only letters"),
            ({"partition": "main", "default_time_s": 5}, "slurm.default_time_s", "60"),
            (
                {"partition": "main", "default_time_s": 9000, "max_time_s": 60},
                "slurm.default_time_s",
                "Choose",
            ),
            ({"partition": "main", "max_time_s": 10**9}, "slurm.max_time_s", "31536000"),
            ({"partition": "main", "gres": {"": "gpu,tape"}}, "slurm.gres", "'gpu,tape' for any GPU"),
            ({"partition": "main", "gres": {"x" * 65: "gpu"}}, "slurm.gres", "64 characters"),
            (
                {"partition": "main", "gres": {str(i): "gpu" for i in range(33)}},
                "slurm.gres",
                "32 GPU models",
            ),
            ({"partition": "main", "shared_folder": "here"}, "slurm.shared_folder", "absolute path"),
            ({"partition": "main", "shared_folder": "/a/../b"}, "slurm.shared_folder", "absolute path"),
            ({"partition": "main", "node_cache": "/a b"}, "slurm.node_cache", "absolute path"),
            ({"partition": "main", "python": "-c"}, "slurm.python", "a command such as python3"),
            ({"partition": "main", "python": "python3; id"}, "slurm.python", "a command such as python3"),
            ({"partition": "main", "command_host": "login"}, "slurm.command_host", "user@host"),
            ({"partition": "main", "command_host": "root@login"}, "slurm.command_host", "never as root"),
            ({"partition": "main", "host_key": "AAAA"}, "slurm.host_key", "Enter lines like ssh-ed25519"),
            ({"partition": "main", "login_group": "a b"}, "slurm.login_group", "a Unix group"),
            ({"partition": "main", "relay_port": 8443}, "slurm.relay_port", "needs a login node"),
            ({"partition": "main", "relay_port": 70000}, "slurm.relay_port", "65535"),
            ({"partition": "main", "relay_host": "a b"}, "slurm.relay_host", "a host name"),
            ({"partition": "main", "colour": "red"}, "slurm.colour", "is not a setting of a partition"),
        ],
    )
    def test_names_the_field_that_is_wrong(self, slurm: dict[str, Any], field: str, words: str) -> None:
        refusal = errors(post(slurm))
        assert list(refusal) == [field]
        assert words in refusal[field]
        assert not Cluster.objects.filter(name="hpc").exists()

    def test_names_all_fields_that_are_wrong(self) -> None:
        refusal = errors(post({"partition": "a b", "account": "a b", "python": "a b"}))
        assert list(refusal) == ["slurm.python", "slurm.partition", "slurm.account"]

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({"kind": "kubernetes"}, "kind"),
            ({"kind": "agent"}, "slurm"),
            ({"min_nodes": 1, "max_nodes": 2}, "min_nodes"),
            ({"provider": "cloud"}, "provider"),
            ({"node_gpus": 8}, "node_gpus"),
            ({"low_priority": True}, "low_priority"),
            ({"avoid_unhealthy_gpus": True}, "avoid_unhealthy_gpus"),
            ({"workspaces": ["nobody"]}, "workspaces"),
        ],
    )
    def test_settings_of_another_kind_are_refused(self, body: dict[str, Any], field: str) -> None:
        assert list(errors(post(**body))) == [field]
        assert not Cluster.objects.filter(name="hpc").exists()

    def test_an_earlier_one_of_that_name_leaves_nothing(self) -> None:
        make_partition(account="old")
        Cluster.objects.update(deleted_at="2026-01-01T00:00Z")
        assert post().json()["slurm"] == DEFAULTS
        Cluster.objects.update(deleted_at="2026-01-01T00:00Z")
        answer = api_client(make_operator()).post("/api/v1/clusters/", {"name": "hpc"}, JSON)
        assert (answer.json()["kind"], SlurmPartition.objects.exists()) == ("agent", False)


class TestChange:
    def test_keeps_what_is_not_given(self) -> None:
        post()
        answer = patch(slurm={"qos": "long"}, description="The big one")
        assert answer.json()["slurm"] == {**DEFAULTS, "qos": "long"}
        assert "slurm.qos is long" in answer.json()["events"][0]["message"]
        changes = AuditEvent.objects.filter(verb="cluster.changed").values_list("detail", flat=True)
        assert list(changes) == [{"fields": ["description", "slurm.qos"]}]

    def test_what_is_read_can_be_sent_back(self) -> None:
        body = post().json()
        answer = patch(kind=body["kind"], slurm=body["slurm"], **body["settings"])
        assert (answer.status_code, answer.json()["slurm"]) == (200, DEFAULTS)
        assert [event["kind"] for event in answer.json()["events"]] == ["made"]

    def test_the_kind_stays(self) -> None:
        post()
        assert "create another cluster" in errors(patch(kind="agent"))["kind"]

    def test_what_is_wrong_changes_nothing(self) -> None:
        post()
        assert list(errors(patch(slurm={"qos": "a b"}, description="x"))) == ["slurm.qos"]
        assert list(errors(patch(max_nodes=4, provider="cloud"))) == ["provider"]
        assert Cluster.objects.get(name="hpc").description == ""


class TestJoin:
    def test_no_machine_joins_it(self) -> None:
        make_partition()
        client = api_client(make_operator())
        answer = client.post("/api/v1/nodes/invitations/", {"cluster": "hpc"}, JSON)
        assert "is a partition of a Slurm" in errors(answer)["cluster"]
        assert client.post("/api/v1/nodes/invitations/", {}, JSON).json()["cluster"] == "local"


class TestDelete:
    def test_waits_for_its_runs_and_forgets_accounts(self) -> None:
        cluster = make_partition()
        UnixAccount.objects.create(cluster=cluster, person=make_operator(), name="ada")
        allocation = make_allocation(cluster, "r1")
        enrol_node("hpc", "hpc-n1")
        client = api_client(make_operator())
        answer = client.delete("/api/v1/clusters/hpc/")
        assert (answer.status_code, "1 run in Slurm's queue" in answer.json()["detail"]) == (409, True)
        allocation.delete()
        Node.objects.update(revoked_at=timezone.now(), removed_at=timezone.now())
        assert client.delete("/api/v1/clusters/hpc/").status_code == 204
        assert not UnixAccount.objects.exists()


class TestUnixAccounts:
    ADDRESS = "/api/v1/clusters/hpc/unix-accounts/"

    def put(self, person: str, account: str) -> Any:
        return api_client(make_operator()).put(self.ADDRESS, {"person": person, "account": account}, JSON)

    def test_are_entered_listed_changed_and_removed(self) -> None:
        make_partition()
        make_contributor()
        client = api_client(make_operator())
        assert self.put("carl", "carl7").json() == {"person": "carl", "account": "carl7"}
        assert self.put("carl", "ada").status_code == 200
        assert client.get(self.ADDRESS).json() == [{"person": "carl", "account": "ada"}]
        assert client.delete(f"{self.ADDRESS}?person=carl").status_code == 204
        assert client.delete(f"{self.ADDRESS}?person=carl").status_code == 404
        verbs = AuditEvent.objects.filter(verb="cluster.unix-account").values_list("detail", flat=True)
        assert [detail["account"] for detail in verbs] == ["carl7", "ada", ""]

    @pytest.mark.parametrize(
        ("person", "account", "field", "words"),
        [
            ("zoe", "ada", "person", "there is no person 'zoe'"),
            ("olivia", "root", "account", "never run as root"),
            ("olivia", "Ada Lovelace", "account", "cannot be the name"),
            ("olivia", "a" * 33, "account", "32"),
            ("olivia", "", "account", "blank"),
        ],
    )
    def test_what_is_wrong_is_named(self, person: str, account: str, field: str, words: str) -> None:
        make_partition()
        refusal = errors(self.put(person, account))
        assert list(refusal) == [field]
        assert words in refusal[field]
        assert not UnixAccount.objects.exists()

    def test_of_a_cluster_of_nodes_there_are_none(self) -> None:
        Cluster.objects.create(name="hpc")
        answer = self.put("olivia", "ada")
        assert (answer.status_code, "no partition of a Slurm" in answer.json()["detail"]) == (409, True)


class TestTest:
    def test_says_that_slurm_does_not_answer(self) -> None:
        make_partition()
        answer = api_client(make_operator()).post("/api/v1/clusters/hpc/test/").json()
        assert answer["is_usable"] is False
        results = {check["name"]: check["result"] for check in answer["checks"]}
        # The commands may be installed here or not.
        assert results.pop("version", "ok") == "ok"
        assert results == {"connection": "error", "hub": "error", "accounts": "warning"}

    def test_says_that_no_node_reaches_a_hub_on_its_own_machine(self) -> None:
        make_partition()
        checks = api_client(make_operator()).post("/api/v1/clusters/hpc/test/").json()["checks"]
        (sentence,) = [check["sentence"] for check in checks if check["name"] == "hub"]
        assert "start it with OPEN=1" in sentence

    def test_names_accounts_that_the_machine_lacks(self) -> None:
        UnixAccount.objects.create(cluster=make_partition(), person=make_operator(), name="no-such-one")
        checks = api_client(make_operator()).post("/api/v1/clusters/hpc/test/").json()["checks"]
        assert checks[-1]["result"] == "error"
        assert "has no account no-such-one" in checks[-1]["sentence"]


class TestAccess:
    def test_changes_are_for_operators(self) -> None:
        make_partition()
        client = api_client(make_owner())
        for answer in (
            client.post("/api/v1/clusters/hpc/test/"),
            client.get("/api/v1/clusters/hpc/unix-accounts/"),
            client.put("/api/v1/clusters/hpc/unix-accounts/", {"person": "olivia", "account": "ada"}, JSON),
            client.delete("/api/v1/clusters/hpc/unix-accounts/?person=olivia"),
        ):
            assert answer.status_code == 403
        assert client.get("/api/v1/clusters/hpc/").json()["slurm"]["partition"] == "main"

    def test_one_of_other_workspaces_is_not_there(self) -> None:
        make_partition().workspaces.add(make_workspace("speech"))
        assert api_client(make_viewer()).get("/api/v1/clusters/hpc/").status_code == 404
