"""Versions that are outdated, and environments that are deleted."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from environments.catalog import environment_names, own_version
from environments.models import Environment, EnvironmentVersion
from environments.succession import environment_notice
from jobs.models import Run
from jobs.scheduling.run_preview import preview
from jobs.sources.own_environments import own_environments
from jobs.states import RunState
from tests.api.asking import refused
from tests.environments.locks import locked
from tests.jobs.builders import launched, node
from tests.pages.builders import text_of
from tests.people import client_of, make_owner, make_person, make_viewer, principal_of
from trainhub_launch.errors import SpecError
from trainhub_launch.spec import EnvironmentRef
from trainhub_launch.spec_reader import read_spec
from workspaces.access import Principal
from workspaces.models import AuditEvent
from workspaces.states import Role

pytestmark = pytest.mark.usefixtures("db", "valkey")
ADDRESS = "/api/v1/environments/mine/"
PAGE = "/environments/mine/"


@pytest.fixture
def api(who: Principal) -> Client:
    return client_of(who.user)


def mark(api: Client, number: int = 1, **body: Any) -> Any:
    return api.put(f"{ADDRESS}versions/{number}/outdated/", body, "application/json")


class TestOutdated:
    def test_the_notice_stands_wherever_the_version_does(self, api: Client, who: Principal) -> None:
        node("alpha")
        locked(who)
        run = launched(who, environment={"name": "mine"})
        locked(who)
        body = mark(api, reason="Its numpy has a bug.", successor="mine:2").json()
        assert (body["outdated"], body["successor"]) == ("Its numpy has a bug.", "mine:2")
        sentence = "mine 1 is outdated: Its numpy has a bug; choose mine 2 for new runs."
        assert environment_notice(who.workspace, "mine", "1") == sentence
        viewer = client_of(make_viewer())
        for address in (f"{PAGE}versions/1/", f"/runs/{run.number}/overview/"):
            assert sentence in text_of(viewer, address), address
        hints = [item.message for item in preview(read_spec(run.spec), who).findings if item.level == "hint"]
        assert sentence.rstrip(".") in hints
        assert "outdated" not in text_of(viewer, "/environments/")
        assert own_version(EnvironmentRef("mine"), who.workspace).number == 2

    def test_the_newest_that_is_not_outdated_is_the_default(self, api: Client, who: Principal) -> None:
        locked(who)
        locked(who)
        mark(api, 2, reason="Slow.")
        assert own_version(EnvironmentRef("mine"), who.workspace).number == 1
        mark(api, 1, reason="Old.")
        assert own_version(EnvironmentRef("mine"), who.workspace).number == 2
        assert "outdated" in text_of(api, "/environments/")
        assert api.get("/api/v1/environments/").json()[0]["notice"].startswith("mine 2 is outdated: Slow")

    def test_can_be_taken_back_and_is_in_the_audit_trail(self, api: Client, who: Principal) -> None:
        locked(who)
        mark(api, reason="Slow.")
        assert api.delete(f"{ADDRESS}versions/1/outdated/").json()["outdated"] == ""
        verbs = AuditEvent.objects.order_by("pk").values_list("verb", flat=True)
        assert [*verbs][-2:] == ["environment.outdated", "environment.current"]

    @pytest.mark.parametrize(
        ("body", "field", "words"),
        [
            ({"reason": " "}, "reason", "is required"),
            ({"reason": "x" * 301}, "reason", "at most 300"),
            ({"reason": "x", "successor": "mine:1"}, "successor", "is the version itself"),
            ({"reason": "x", "successor": "mine:9"}, "successor", "has no version '9'"),
            ({"reason": "x", "successor": "none"}, "successor", "is not an environment"),
            ({"reason": "x", "successor": "TrainHub-PyTorch-2.13:9"}, "successor", "it has 1"),
        ],
    )
    def test_bad_input(
        self, api: Client, who: Principal, body: dict[str, Any], field: str, words: str
    ) -> None:
        locked(who)
        refused(mark(api, **body), 400, field, words)

    def test_on_the_page(self, api: Client, who: Principal) -> None:
        locked(who)
        address = f"{PAGE}versions/1/outdated/"
        api.post(address, {"reason": "Slow.", "successor": "TrainHub-PyTorch-2.13"})
        assert "choose TrainHub-PyTorch-2.13 for new runs" in text_of(api, f"{PAGE}versions/1/")
        api.post(address, {"is_current": "1"})
        assert not EnvironmentVersion.objects.exclude(outdated="").exists()
        answer = api.post(address, {"reason": ""}, follow=True)
        assert "It was not marked: reason say in a sentence" in answer.content.decode()


class TestDeletion:
    def test_without_a_run_nothing_is_left(self, api: Client, who: Principal) -> None:
        locked(who)
        assert api.delete(ADDRESS).status_code == 204
        assert not Environment.objects.exists()
        assert AuditEvent.objects.filter(verb="environment.delete", subject="mine").exists()

    def test_one_that_a_run_names_stays_readable(self, api: Client, who: Principal) -> None:
        node("alpha")
        locked(who)
        run = launched(who, environment={"name": "mine"})
        refused(api.delete(ADDRESS), 400, "name", f"run {run.number} is not over and needs it")
        Run.objects.update(state=RunState.COMPLETED)
        answer = api.post(f"{PAGE}delete/", follow=True)
        assert "The environment mine is deleted." in answer.content.decode()
        assert "was deleted" in text_of(api, f"{PAGE}versions/1/")
        assert api.get(f"{ADDRESS}versions/1/").json()["lock"]
        assert api.get(ADDRESS).json()["deleted_at"]
        assert "mine" not in environment_names(who.workspace)
        assert own_environments(who.workspace) == []
        with pytest.raises(SpecError, match="was deleted"):
            own_version(EnvironmentRef("mine", "1"), who.workspace)
        taken = api.post(
            "/api/v1/environments/", {"name": "mine", "requirements": ["numpy"]}, "application/json"
        )
        refused(taken, 400, "name", "choose another name")
        assert api.delete(ADDRESS).status_code == 404
        assert api.get(f"{PAGE}edit/").status_code == 404

    def test_is_for_owners_and_who_made_it(self, api: Client, who: Principal) -> None:
        locked(who)
        other = client_of(make_person("ida", Role.CONTRIBUTOR))
        assert other.delete(ADDRESS).status_code == 403
        assert "Delete mine" not in other.get(PAGE).content.decode()
        owner = principal_of(make_owner())
        assert "Delete mine" in client_of(owner.user).get(PAGE).content.decode()
        assert client_of(owner.user).delete(ADDRESS).status_code == 204

    def test_waits_for_the_resolver(self, api: Client, who: Principal) -> None:
        version = locked(who)
        EnvironmentVersion.objects.filter(pk=version.pk).update(state="resolving")
        refused(api.delete(ADDRESS), 400, "name", "is being resolved")
