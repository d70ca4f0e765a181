"""A workspace's own environments in the API: making, cloning, looking at them, and naming one in a spec."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from clusters.models import Node
from environments import changes
from environments.models import EnvironmentVersion
from environments.states import VersionState
from tests.api.asking import refused
from tests.environments.locks import LOCK, locked
from tests.jobs.builders import Played, launched
from tests.people import client_of, make_person, make_workspace
from workspaces.access import Principal
from workspaces.models import AuditEvent
from workspaces.states import Role

ADDRESS = "/api/v1/environments/"


def post(api: Client, path: str = "", **body: Any) -> Any:
    return api.post(f"{ADDRESS}{path}", body, "application/json")


class TestMaking:
    def test_answers_with_version_and_state(self, api: Client, node: Node) -> None:
        answer = post(api, name="mine", kind="pip", requirements=["numpy==2.1.0", "# why", "pandas"])
        assert answer.status_code == 201, answer.content
        body = answer.json()
        assert (body["name"], body["version"], body["kind"]) == ("mine", "1", "pip")
        assert (body["state"], body["lock"], body["builds"]) == ("resolving", "", [])
        assert body["requirements"] == ["numpy==2.1.0", "# why", "pandas"]
        assert body["python"] == "3.11"

    def test_the_same_name_again_makes_the_next_version(self, api: Client) -> None:
        post(api, name="mine", python="3.12", requirements=["numpy"])
        body = post(api, name="mine", requirements=["pandas"]).json()
        assert (body["version"], body["python"]) == ("2", "3.12")
        detail = api.get(f"{ADDRESS}mine/").json()
        assert [item["version"] for item in detail["versions"]] == ["2", "1"]
        assert detail["versions"][1]["requirements"] == ["numpy"]

    def test_takes_a_project_with_its_lock(self, api: Client) -> None:
        pyproject = '[project]\nname = "x"\ndependencies = ["numpy"]\n'
        uv_lock = 'version = 1\n[[package]]\nname = "numpy"\n'
        body = post(api, name="mine", pyproject=pyproject, uv_lock=uv_lock).json()
        assert body["requirements"] == []
        assert body["source"] == f"{pyproject}#--- uv.lock ---\n{uv_lock}"
        refused(post(api, name="mine", uv_lock=uv_lock), 400, "uv_lock", "needs the pyproject.toml")
        refused(post(api, name="mine", pyproject="[project]"), 400, "pyproject", "has no [project] table")
        refused(post(api, name="mine", pylock="[[packages]]"), 400, "pylock", "lock the project again")
        both = post(api, name="mine", pyproject=pyproject, requirements=["numpy"])
        refused(both, 400, "requirements", "give either requirements")

    def test_is_in_the_audit_trail(self, api: Client) -> None:
        post(api, name="mine", requirements=["numpy"])
        post(api, name="mine", requirements=["pandas"])
        events = AuditEvent.objects.filter(verb__startswith="environment.").order_by("pk")
        assert [(event.verb, event.subject) for event in events] == [
            ("environment.create", "mine"),
            ("environment.version", "mine 1"),
            ("environment.version", "mine 2"),
        ]

    @pytest.mark.parametrize(
        ("changed", "field", "words"),
        [
            ({"name": "TrainHub-mine"}, "name", "belong to curated environments"),
            ({"name": "trainhubmine"}, "name", "belong to curated environments"),
            ({"name": "azureml-mine"}, "name", "belong to curated environments"),
            ({"name": "system"}, "name", "choose another name"),
            ({"name": "New"}, "name", "choose another name"),
            ({"name": "a b"}, "name", "such as digits-torch"),
            ({"name": "a:1"}, "name", "such as digits-torch"),
            ({"name": ""}, "name", "is required"),
            ({"kind": "zip"}, "kind", "choose one of 'pip', 'conda'"),
            ({"python": "3.11.7"}, "python", "give one such as 3.11"),
            ({"python": "2.7"}, "python", "give one such as 3.11"),
            ({"requirements": "numpy"}, "requirements", "must be a list of lines"),
            ({"requirements": [1]}, "requirements", "must be a list of lines"),
            ({"requirements": []}, "requirements", "name at least one package"),
            ({"requirements": ["numpy", "-e ."]}, "requirements", "line 2: -e is not possible here"),
            ({"requirements": ["x" * 600_000]}, "requirements", "at most 512 KiB"),
            ({"image": "x"}, "image", ""),
        ],
    )
    def test_bad_input_names_its_field(
        self, api: Client, changed: dict[str, Any], field: str, words: str
    ) -> None:
        refused(post(api, **{"name": "mine", "requirements": ["numpy"], **changed}), 400, field, words)
        assert not EnvironmentVersion.objects.exists()

    def test_only_a_few_are_resolved_at_once(self, api: Client) -> None:
        for _ in range(changes.MAX_RESOLVING):
            assert post(api, name="mine", requirements=["numpy"]).status_code == 201
        refused(post(api, name="mine", requirements=["numpy"]), 400, "requirements", "wait until one of them")

    def test_has_largest_numbers(self, api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(changes, "MAX_ENVIRONMENTS", 1)
        monkeypatch.setattr(changes, "MAX_VERSIONS", 1)
        post(api, name="mine", requirements=["numpy"])
        refused(post(api, name="other", requirements=["numpy"]), 400, "name", "make a version of one of them")
        refused(post(api, name="mine", requirements=["numpy"]), 400, "name", "clone it to a new name")

    def test_a_viewer_cannot(self, viewer_api: Client) -> None:
        assert post(viewer_api, name="mine", requirements=["numpy"]).status_code == 403


class TestCloning:
    def test_takes_the_source_of_an_own_and_of_a_curated_one(self, api: Client) -> None:
        post(api, name="mine", python="3.12", requirements=["numpy"])
        body = post(api, "mine/clone/", new_name="yours").json()
        assert (body["name"], body["version"], body["python"]) == ("yours", "1", "3.12")
        body = post(api, "TrainHub-PyTorch-2.13/clone/", new_name="torch").json()
        assert "torch==2.13.0" in body["requirements"]

    def test_takes_the_version_that_is_named(self, api: Client) -> None:
        post(api, name="mine", requirements=["numpy"])
        post(api, name="mine", requirements=["pandas"])
        assert post(api, "mine/clone/", new_name="old", version="1").json()["requirements"] == ["numpy"]
        refused(post(api, "mine/clone/", new_name="x", version="3"), 400, "version", "has no version 3")
        refused(post(api, "mine/clone/", new_name="x", version="a"), 400, "version", "such as 1")

    def test_refuses_a_name_that_is_taken_or_reserved(self, api: Client) -> None:
        post(api, name="mine", requirements=["numpy"])
        refused(post(api, "mine/clone/", new_name="mine"), 400, "new_name", "choose another name")
        refused(post(api, "mine/clone/", new_name="AzureML-x"), 400, "new_name", "curated")

    def test_nothing_is_cloned_from_what_is_not_there(self, api: Client) -> None:
        assert post(api, "nope/clone/", new_name="mine").status_code == 404


class TestLookingAt:
    def test_a_version_has_its_lock_and_the_nodes_that_built_it(
        self, api: Client, who: Principal, node: Node
    ) -> None:
        locked(who, "mine")
        alpha = Played(node)
        run = launched(who, environment={"name": "mine"})
        alpha.claim(run)
        alpha.tell(run, "running")
        body = api.get(f"{ADDRESS}mine/versions/1/").json()
        assert (body["state"], body["lock"]) == ("locked", LOCK)
        assert [(item["node"], item["cluster"]) for item in body["builds"]] == [("alpha", "local")]

    def test_a_failure_has_its_reason(self, api: Client) -> None:
        post(api, name="mine", requirements=["numpy"])
        EnvironmentVersion.objects.update(state=VersionState.FAILED, failure="No.")
        assert api.get(f"{ADDRESS}mine/versions/1/").json()["failure"] == "No."

    def test_the_list_has_own_ones_first(self, api: Client, who: Principal) -> None:
        locked(who, "mine")
        first = api.get(ADDRESS).json()[0]
        assert (first["name"], first["version"], first["state"]) == ("mine", "1", "locked")

    @pytest.mark.parametrize("path", ["mine/", "mine/versions/1/"])
    def test_another_workspace_sees_nothing(self, who: Principal, path: str) -> None:
        locked(who, "mine")
        stranger = client_of(make_person("mallory", Role.OWNER, make_workspace("other")))
        assert stranger.get(f"{ADDRESS}{path}").status_code == 404
