"""Descriptions, tags, names, stages, protected aliases, and what only owners do."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.test import Client

from registry import model_metadata, stages
from registry.aliases import delete_alias, set_alias
from registry.errors import RegistryError
from registry.models import ModelAlias, ModelFile, ModelVersion, RegisteredModel
from registry.registration import register
from tests.people import api_client, client_of, make_contributor, make_owner, make_workspace
from tests.registry.builders import run_with
from workspaces.models import AuditEvent

pytestmark = pytest.mark.django_db
MODEL = "/api/v1/models/digits/"
VERSION = f"{MODEL}versions/1/"


def made(versions: int = 1) -> RegisteredModel:
    run = run_with("model.pt")
    for _ in range(versions):
        version = register(make_workspace(), "digits", run, "model.pt", make_contributor())
    return version.model


def patch(client: Client, address: str, body: dict[str, Any]) -> Any:
    return client.patch(address, body, content_type="application/json")


class TestProtected:
    def test_only_owners_move_such_an_alias_or_take_it_away(self) -> None:
        model = made()
        model_metadata.protect(model, ["Production"], make_owner())
        with pytest.raises(PermissionDenied, match="protected"):
            set_alias(model, "production", 1, make_contributor())
        set_alias(model, "production", 1, make_owner(), is_owner=True)
        with pytest.raises(PermissionDenied):
            delete_alias(model, "production", make_contributor())
        assert ModelAlias.objects.count() == 1

    def test_a_stage_of_that_name_too_into_and_out_of(self) -> None:
        model = made()
        model_metadata.protect(model, ["production"], make_owner())
        version = model.versions.get()
        with pytest.raises(PermissionDenied):
            stages.move(version, "Production", make_contributor())
        stages.move(version, "Production", make_owner(), is_owner=True)
        with pytest.raises(PermissionDenied):
            stages.move(version, "Archived", make_contributor())

    def test_the_list_is_an_owners(self) -> None:
        made()
        assert patch(api_client(make_contributor()), MODEL, {"protected": ["production"]}).status_code == 403
        assert patch(api_client(make_owner()), MODEL, {"protected": ["production"]}).json()["protected"] == [
            "production"
        ]
        client = api_client(make_contributor())
        assert (
            client.put(
                f"{MODEL}aliases/production/", {"version": 1}, content_type="application/json"
            ).status_code
            == 403
        )
        client_of(make_owner()).post("/models/digits/protect/", {"protected": "production, staging"})
        assert RegisteredModel.objects.get().protected == ["production", "staging"]

    @pytest.mark.parametrize(
        ("names", "words"),
        [("production v7", "looks like a version"), (" ".join(f"a{n}" for n in range(51)), "may hold 50")],
    )
    def test_a_list_that_is_refused_changes_nothing_and_says_why(self, names: str, words: str) -> None:
        model = made()
        page = client_of(make_owner()).post("/models/digits/protect/", {"protected": names}, follow=True)
        assert "Nothing was changed" in page.content.decode()
        assert words in page.content.decode()
        model.refresh_from_db()
        assert model.protected == []

    def test_on_the_page_too(self) -> None:
        model = made()
        model_metadata.protect(model, ["production"], make_owner())
        answer = client_of(make_contributor()).post(
            "/models/digits/alias/", {"alias": "production", "version": "1"}
        )
        assert answer.status_code == 403
        assert "ask an owner" in answer.content.decode()


class TestTags:
    def test_are_set_and_taken_away_and_others_stay(self) -> None:
        made()
        client = api_client(make_contributor())
        assert patch(client, VERSION, {"tags": {"a": "1", "b": "2"}}).json()["tags"] == {"a": "1", "b": "2"}
        assert patch(client, VERSION, {"tags": {"a": None}, "description": "x"}).json()["tags"] == {"b": "2"}
        assert patch(client, MODEL, {"tags": {"team": "vision"}}).json()["tags"] == {"team": "vision"}

    @pytest.mark.parametrize(
        ("key", "value"),
        [("", "x"), ("k" * 251, "x"), ("k", "x" * 100_001), ("trainhub.scan", "clean"), ("a\nb", "x")],
    )
    def test_too_long_or_our_own_are_refused_and_nothing_is_changed(self, key: str, value: str) -> None:
        version = made().versions.get()
        answer = patch(
            api_client(make_contributor()), VERSION, {"description": "new", "tags": {"good": "x", key: value}}
        )
        assert answer.status_code == 400
        version.refresh_from_db()
        assert (version.tags, version.description) == ({}, "")

    def test_a_prompt_is_no_model(self) -> None:
        made()
        response = patch(api_client(make_contributor()), MODEL, {"tags": {"mlflow.prompt.is_prompt": "true"}})
        assert (response.status_code, "does not store prompts" in response.json()["detail"]) == (400, True)

    def test_one_is_set_and_deleted_on_the_page(self) -> None:
        version, client = made().versions.get(), client_of(make_contributor())
        client.post("/models/digits/versions/1/change/", {"tag": " dataset = digits = 8x8 "})
        version.refresh_from_db()
        assert version.tags == {"dataset": "digits = 8x8"}
        client.post("/models/digits/versions/1/change/", {"remove_tag": "dataset"})
        version.refresh_from_db()
        assert version.tags == {}

    def test_there_is_an_end_to_them(self) -> None:
        version = made().versions.get()
        ModelVersion.objects.update(tags={str(number): "" for number in range(1000)})
        with pytest.raises(RegistryError, match="1000"):
            model_metadata.set_tag(version, "one more", "")


class TestDescription:
    @pytest.mark.parametrize(
        ("text", "words"), [("x" * 100_001, "use at most 100000"), ("a\x00b", "the character NUL")]
    )
    def test_one_that_cannot_be_stored_is_refused_by_the_api_and_on_both_pages(
        self, text: str, words: str
    ) -> None:
        model = made()
        for address in (MODEL, VERSION):
            response = patch(api_client(make_contributor()), address, {"description": text})
            assert response.status_code == 400
        client = client_of(make_contributor())
        for address in ("/models/digits/describe/", "/models/digits/versions/1/change/"):
            assert words in client.post(address, {"description": text}, follow=True).content.decode()
        model.refresh_from_db()
        assert (model.description, model.versions.get().description) == ("", "")


class TestNames:
    def test_renaming_is_an_owners_and_keeps_everything(self) -> None:
        made()
        assert patch(api_client(make_contributor()), MODEL, {"name": "numbers"}).status_code == 403
        assert patch(api_client(make_owner()), MODEL, {"name": "numbers"}).json()["name"] == "numbers"
        assert ModelVersion.objects.get().model.name == "numbers"

    def test_a_name_that_is_taken_is_refused(self) -> None:
        made()
        model_metadata.create_model(make_workspace(), "numbers", make_owner())
        assert (
            patch(api_client(make_owner()), MODEL, {"name": "numbers"}).json()["errors"][0]["field"]
            == "new_name"
        )

    @pytest.mark.parametrize("key", ["\ud800", "a\n", "", "k" * 251])
    def test_a_tag_of_which_no_answer_could_tell_is_refused(self, key: str) -> None:
        made()
        for address in (MODEL, VERSION):
            assert patch(api_client(make_contributor()), address, {"tags": {key: "x"}}).status_code == 400
            assert api_client(make_contributor()).get(address).json()["tags"].keys() <= {"trainhub.scan"}

    def test_a_model_can_be_made_without_versions(self) -> None:
        client = api_client(make_contributor())
        answer = client.post(
            "/api/v1/models/", {"name": "empty", "tags": {"a": "1"}}, content_type="application/json"
        )
        assert (answer.status_code, answer.json()["latest_version"]) == (201, 0)
        again = client.post("/api/v1/models/", {"name": "empty"}, content_type="application/json")
        assert again.json()["errors"][0]["field"] == "name"
        assert client_of(make_contributor()).get("/models/").status_code == 200
        assert client_of(make_contributor()).get("/models/empty/").status_code == 200


class TestDeleting:
    def test_is_an_owners(self) -> None:
        made()
        for address in (VERSION, MODEL):
            assert api_client(make_contributor()).delete(address).status_code == 403
        assert client_of(make_contributor()).post("/models/digits/delete/").status_code == 403
        assert client_of(make_contributor()).post("/models/digits/versions/1/delete/").status_code == 403
        assert ModelVersion.objects.count() == 1

    def test_a_version_goes_with_aliases_and_files_and_its_number_is_not_given_again(self) -> None:
        model = made(2)
        set_alias(model, "production", 2, make_owner())
        assert api_client(make_owner()).delete(f"{MODEL}versions/2/").status_code == 204
        assert (ModelAlias.objects.count(), ModelFile.objects.count()) == (0, 1)
        run = model.versions.get().run
        assert run is not None
        assert register(make_workspace(), "digits", run, "model.pt", make_contributor()).number == 3

    def test_a_model_goes_whole_and_it_is_on_record(self) -> None:
        made(2)
        assert client_of(make_owner()).post("/models/digits/delete/").status_code == 302
        assert not ModelVersion.objects.exists()
        assert AuditEvent.objects.filter(verb="model.deleted").count() == 1


class TestStages:
    def test_of_those_in_it_only_the_new_one_stays_when_asked(self) -> None:
        model = made(2)
        first, second = model.versions.order_by("number")
        stages.move(first, "staging", make_contributor())
        stages.move(second, "Staging", make_contributor(), archive=True)
        assert [version.stage for version in model.versions.order_by("number")] == ["Archived", "Staging"]

    def test_are_changed_on_the_page_and_a_protected_one_by_owners_alone(self) -> None:
        model, address = made(), "/models/digits/versions/1/change/"
        client_of(make_contributor()).post(address, {"stage": "Staging"})
        assert model.versions.get().stage == "Staging"
        model_metadata.protect(model, ["production"], make_owner())
        page = client_of(make_contributor()).post(address, {"stage": "Production"}, follow=True)
        assert "is protected: ask an owner" in page.content.decode()
        assert model.versions.get().stage == "Staging"
        client_of(make_owner()).post(address, {"stage": "Production"})
        assert model.versions.get().stage == "Production"

    @pytest.mark.parametrize(("stage", "archive"), [("Prod", False), ("Archived", True)])
    def test_a_word_that_is_none_is_refused(self, stage: str, archive: bool) -> None:
        with pytest.raises(RegistryError):
            stages.move(made().versions.get(), stage, make_contributor(), archive=archive)
