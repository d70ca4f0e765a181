from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from registry import model_metadata
from registry.models import ModelVersion
from registry.registration import register
from tests.people import (
    api_client,
    make_contributor,
    make_owner,
    make_stranger,
    make_viewer,
    make_workspace,
)
from tests.registry.builders import run_with

pytestmark = pytest.mark.django_db
VERSIONS = "/api/v1/models/digits/versions/"


def post(client: Client, address: str, body: dict[str, Any]) -> Any:
    return client.post(address, body, content_type="application/json")


def put(client: Client, address: str, body: dict[str, Any]) -> Any:
    return client.put(address, body, content_type="application/json")


def registered() -> ModelVersion:
    return register(
        make_workspace(),
        "digits",
        run_with("saved/w.pt"),
        "saved",
        make_contributor(),
        description="best so far",
    )


class TestRegister:
    def test_a_contributor_registers_an_output(self) -> None:
        run = run_with("model.pt")
        answer = post(
            api_client(make_contributor()),
            VERSIONS,
            {"run": run.pk, "path": "model.pt", "description": "first"},
        )
        assert answer.status_code == 201
        told = answer.json()
        assert (told["model"], told["version"], told["created_by"]) == ("digits", 1, "carl")
        assert (told["run"], told["run_number"]) == (run.pk, 41)
        assert told["files"][0]["url"] == "/api/v1/models/digits/versions/1/files/model.pt"

    def test_an_address_as_source_stands_for_run_and_path(self) -> None:
        run = run_with("model.pt")
        body = {"source": f"runs:/{run.pk}/model.pt", "run": run.pk}
        response = post(api_client(make_contributor()), VERSIONS, body)
        assert (response.status_code, response.json()["run"], response.json()["path"]) == (
            201,
            run.pk,
            "model.pt",
        )
        body["source"] = "s3://bucket/model"
        response = post(api_client(make_contributor()), VERSIONS, body)
        assert (response.status_code, response.json()["errors"][0]["field"]) == (400, "source")

    def test_a_viewer_may_not(self) -> None:
        run = run_with("model.pt")
        assert (
            post(api_client(make_viewer()), VERSIONS, {"run": run.pk, "path": "model.pt"}).status_code == 403
        )
        assert not ModelVersion.objects.exists()

    @pytest.mark.parametrize(
        ("wrong", "field"),
        [
            ({"path": "nope.pt"}, "path"),
            ({"path": ""}, "path"),
            ({"run": "f" * 32}, "run"),
            ({"run": None}, "run"),
        ],
    )
    def test_what_is_wrong_is_named(self, wrong: dict[str, Any], field: str) -> None:
        body = {"run": run_with("model.pt").pk, "path": "model.pt"} | wrong
        answer = post(api_client(make_contributor()), VERSIONS, body)
        assert answer.status_code == 400
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert [error["field"] for error in answer.json()["errors"]] == [field]

    def test_a_wrong_name_is_named(self) -> None:
        body = {"run": run_with("model.pt").pk, "path": "model.pt"}
        answer = post(api_client(make_contributor()), "/api/v1/models/-x/versions/", body)
        assert answer.json()["errors"][0]["field"] == "name"

    def test_a_run_of_another_workspace_is_unknown(self) -> None:
        run = run_with("model.pt", workspace=make_workspace("speech"))
        answer = post(api_client(make_contributor()), VERSIONS, {"run": run.pk, "path": "model.pt"})
        assert answer.json()["errors"][0]["field"] == "run"


class TestRead:
    def test_a_viewer_reads_models_versions_and_files(self) -> None:
        registered()
        client = api_client(make_viewer())
        assert client.get("/api/v1/models/").json()[0]["name"] == "digits"
        assert client.get("/api/v1/models/digits/").json()["latest_version"] == 1
        (version,) = client.get(VERSIONS).json()
        assert version == client.get(f"{VERSIONS}1/").json()
        assert (version["path"], version["files"][0]["path"], version["description"]) == (
            "saved",
            "w.pt",
            "best so far",
        )

    @pytest.mark.parametrize("address", ["", "digits/", "digits/versions/", "digits/versions/1/"])
    def test_a_stranger_gets_nothing(self, address: str) -> None:
        registered()
        assert Client().get(f"/api/v1/models/{address}").status_code == 401
        client = Client()
        client.force_login(make_stranger())
        assert client.get(f"/api/v1/models/{address}").status_code == 404

    @pytest.mark.parametrize("address", ["nope/", "nope/versions/", "digits/versions/2/"])
    def test_what_is_not_there_is_not_found(self, address: str) -> None:
        registered()
        assert api_client(make_viewer()).get(f"/api/v1/models/{address}").status_code == 404

    def test_models_of_other_workspaces_are_not_there(self) -> None:
        speech = make_workspace("speech")
        register(speech, "voices", run_with("m.pt", workspace=speech), "m.pt", make_contributor())
        client = api_client(make_viewer())
        assert client.get("/api/v1/models/").json() == []
        assert client.get("/api/v1/models/voices/").status_code == 404


class TestStage:
    def test_is_changed_and_a_wrong_word_is_refused_with_those_there_are(self) -> None:
        registered()
        client, address = api_client(make_contributor()), f"{VERSIONS}1/"
        response = client.patch(address, {"stage": "staging"}, content_type="application/json")
        assert response.json()["stage"] == "Staging"
        response = client.patch(address, {"stage": "prod"}, content_type="application/json")
        assert (response.status_code, response.json()["errors"][0]["field"]) == (400, "stage")
        assert "Production" in response.json()["detail"]

    def test_one_that_is_protected_is_an_owners(self) -> None:
        model_metadata.protect(registered().model, ["production"], make_owner())
        body = {"stage": "Production"}
        for person, status in ((make_contributor(), 403), (make_owner(), 200)):
            response = api_client(person).patch(f"{VERSIONS}1/", body, content_type="application/json")
            assert response.status_code == status
        assert ModelVersion.objects.get().stage == "Production"


class TestAliases:
    def test_put_sets_and_moves_delete_removes(self) -> None:
        run = registered().run
        register(make_workspace(), "digits", run, "saved", make_contributor())  # type: ignore[arg-type]
        client, address = api_client(make_contributor()), "/api/v1/models/digits/aliases/production/"
        assert put(client, address, {"version": 1}).json()["aliases"] == {"production": 1}
        assert put(client, address, {"version": 2}).json()["aliases"] == {"production": 2}
        assert client.get(f"{VERSIONS}2/").json()["aliases"] == ["production"]
        assert client.delete(address).status_code == 204
        assert client.delete(address).status_code == 404

    @pytest.mark.parametrize("body", [{"version": 9}, {"version": 0}, {"version": "x"}, {}])
    def test_a_wrong_version_is_named(self, body: dict[str, Any]) -> None:
        registered()
        answer = put(api_client(make_contributor()), "/api/v1/models/digits/aliases/production/", body)
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "version")

    def test_a_viewer_may_not(self) -> None:
        registered()
        client = api_client(make_viewer())
        assert put(client, "/api/v1/models/digits/aliases/production/", {"version": 1}).status_code == 403
