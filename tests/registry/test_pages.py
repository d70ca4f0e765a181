from __future__ import annotations

import pytest
from django.test import Client

from clusters.models import Node
from registry import forms
from registry.aliases import set_alias
from registry.models import ModelAlias, ModelVersion, RegisteredModel
from registry.registration import register
from registry.views import versions
from tests.jobs.builders import running
from tests.people import (
    client_of,
    make_contributor,
    make_person,
    make_stranger,
    make_viewer,
    make_workspace,
    principal_of,
)
from tests.registry.builders import add_output, run_with
from tracking.metrics.point_writer import Point, append
from workspaces.states import Role

pytestmark = pytest.mark.django_db


def text_of(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200, response.status_code
    return response.content.decode()


def registered(name: str = "digits") -> ModelVersion:
    return register(
        make_workspace(),
        name,
        run_with("model.pt"),
        "model.pt",
        make_contributor(),
        description="best so far",
    )


class TestModelsPage:
    def test_lists_models_with_latest_version_and_aliases(self) -> None:
        version = registered()
        set_alias(version.model, "production", 1, make_contributor())
        page = text_of(client_of(make_viewer()), "/models/")
        for words in ("digits", "version 1", "production", "run 41"):
            assert words in page, words

    def test_when_empty_teaches_the_next_step_to_whoever_can_take_it(self) -> None:
        assert "Register a model" in text_of(client_of(make_contributor()), "/models/")
        assert "Register a model" not in text_of(client_of(make_viewer()), "/models/")


class TestRegisterPage:
    @pytest.mark.parametrize("field", ["name", "path", "description"])
    def test_a_character_that_cannot_be_stored_is_refused_by_the_form(self, field: str) -> None:
        typed = {"name": "digits", "path": "model.pt", "description": "best", "run": run_with("model.pt").pk}
        sent = {**typed, field: "a\0b"}
        response = client_of(make_contributor()).post("/register/", sent)
        assert response.status_code == 422
        assert "Null characters are not allowed" in response.content.decode()
        assert not ModelVersion.objects.exists()


class TestVersionPage:
    def test_a_change_that_is_refused_in_part_changes_nothing(self) -> None:
        version = registered()
        sent = {"description": "new", "tag": "no value"}
        client_of(make_contributor()).post(f"/models/digits/versions/{version.number}/change/", sent)
        version.refresh_from_db()
        assert (version.description, version.tags) == ("best so far", {})

    def test_shows_the_last_values_of_metrics_and_the_driver_of_the_machine(self) -> None:
        played, run = running(principal_of(make_contributor()))
        Node.objects.filter(pk=played.node.pk).update(driver="550.54.15")
        add_output(run, "model.pt")
        append(run.pk, run.experiment_id, [Point("loss", 1 / 3, 3, 1), Point("grad", float("nan"), 3, 1)])
        register(make_workspace(), "digits", run, "model.pt", make_contributor())
        page = text_of(client_of(make_viewer()), "/models/digits/versions/1/")
        assert '<td class="th-num" title="0.3333333333333333">0.333333</td>' in page
        assert '<td class="th-num" title="NaN">nan</td>' in page
        assert "driver 550.54.15" in page

    def test_of_many_files_shows_some_the_dangerous_ones_among_them(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(versions, "MAX_FILES", 2)
        run = run_with(*(f"all/{name}.bin" for name in "abcd"))
        version = register(make_workspace(), "digits", run, "all", make_contributor())
        told = {"findings": [], "note": ""}
        version.scan = {
            f"{name}.bin": {"verdict": "dangerous" if name == "d" else "clean", **told} for name in "abcd"
        }
        version.save()
        page = text_of(client_of(make_viewer()), "/models/digits/versions/1/")
        assert ("4 files" in page, "Only 2 files are shown" in page) == (True, True)
        assert [name for name in "abcd" if f'aria-label="Download {name}.bin"' in page] == ["a", "d"]


class TestModelPage:
    def test_shows_each_version_with_lineage_files_and_download(self) -> None:
        version = registered()
        page = text_of(client_of(make_viewer()), "/models/digits/")
        for words in (
            "Version 1",
            "run 41",
            "outputs/model.pt",
            "best so far",
            version.files.get().sha256,
            "carl",
        ):
            assert words in page, words
        assert "/api/v1/models/digits/versions/1/files/model.pt" in page

    def test_a_viewer_sees_no_way_to_change_anything(self) -> None:
        registered()
        assert '<form class="th-alias-form"' not in text_of(client_of(make_viewer()), "/models/digits/")

    def test_a_name_with_spaces_has_a_page_too(self) -> None:
        registered("digits of people")
        assert "Version 1" in text_of(client_of(make_viewer()), "/models/digits%20of%20people/")

    def test_a_deleted_run_is_said_to_be_deleted(self) -> None:
        version = registered()
        assert version.run is not None
        version.run.delete()
        assert "a deleted run" in text_of(client_of(make_viewer()), "/models/digits/")


class TestAliasForm:
    def test_sets_and_removes(self) -> None:
        registered()
        client = client_of(make_contributor())
        assert (
            client.post("/models/digits/alias/", {"alias": "production", "version": "1"}).status_code == 302
        )
        assert ModelAlias.objects.get().version.number == 1
        client.post("/models/digits/alias/", {"alias": "production", "remove": "yes"})
        assert not ModelAlias.objects.exists()

    def test_a_wrong_alias_stays_in_its_field_with_the_reason(self) -> None:
        registered()
        answer = client_of(make_contributor()).post("/models/digits/alias/", {"alias": "v7", "version": "1"})
        assert answer.status_code == 422
        assert "looks like a version" in answer.content.decode()
        assert 'value="v7"' in answer.content.decode()

    def test_its_address_leads_back_to_the_model(self) -> None:
        registered()
        assert (
            client_of(make_contributor()).get("/models/digits/alias/").headers["Location"]
            == "/models/digits/"
        )

    def test_a_viewer_may_not(self) -> None:
        registered()
        assert (
            client_of(make_viewer()).post("/models/digits/alias/", {"alias": "x", "version": "1"}).status_code
            == 403
        )


class TestRegisterForm:
    @pytest.mark.parametrize("by", ["pk", "number"])
    def test_is_filled_from_the_address_and_offers_the_outputs(self, by: str) -> None:
        run = run_with("model.pt", "saved/w.pt")
        page = text_of(
            client_of(make_contributor()), f"/register/?run={getattr(run, by)}&path=model.pt&name=digits"
        )
        for words in (
            'value="model.pt"',
            'value="digits"',
            f'value="{run.pk}" selected',
            '<option value="saved/">',
        ):
            assert words in page, words

    def test_registers_and_goes_to_the_version(self) -> None:
        run = run_with("model.pt")
        typed = {"run": run.pk, "path": "model.pt", "name": "digits", "description": "x"}
        answer = client_of(make_contributor()).post("/register/", typed)
        assert (answer.status_code, answer.headers["Location"]) == (302, "/models/digits/versions/1/")
        assert ModelVersion.objects.get().description == "x"

    def test_a_run_of_a_link_is_offered_though_it_is_older_than_those_listed(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(forms, "MAX_RUNS", 1)
        old = run_with("model.pt")
        run_with("model.pt", number=42)
        page = text_of(client_of(make_contributor()), f"/register/?run={old.pk}")
        assert f'value="{old.pk}" selected' in page

    @pytest.mark.parametrize(
        ("wrong", "sentence"),
        [
            ({"name": ""}, "enter a name for the model"),
            ({"name": "a/b"}, "starting with a letter or digit"),
            ({"path": "nope.pt"}, "is not among the outputs of run 41"),
            ({"run": "f" * 32}, "Choose one of the runs"),
        ],
    )
    def test_errors_keep_what_was_typed(self, wrong: dict[str, str], sentence: str) -> None:
        typed = {
            "run": run_with("model.pt").pk,
            "path": "model.pt",
            "name": "digits",
            "description": "my words",
        } | wrong
        answer = client_of(make_contributor()).post("/register/", typed)
        page = answer.content.decode()
        assert answer.status_code == 422
        assert sentence in page
        assert "my words" in page
        assert typed["path"] in page

    def test_a_viewer_may_not(self) -> None:
        run = run_with("model.pt")
        client = client_of(make_viewer())
        assert client.get("/register/").status_code == 403
        assert (
            client.post("/register/", {"run": run.pk, "path": "model.pt", "name": "digits"}).status_code
            == 403
        )
        assert not RegisteredModel.objects.exists()


class TestAccess:
    @pytest.mark.parametrize("address", ["/models/", "/models/digits/", "/register/"])
    def test_a_stranger_finds_nothing(self, address: str) -> None:
        registered()
        assert client_of(make_stranger()).get(address).status_code == 404
        assert client_of(None).get(address).status_code == 302

    def test_another_workspace_sees_nothing_of_it(self) -> None:
        registered()
        client = client_of(make_person("sue", Role.OWNER, make_workspace("speech")))
        assert client.get("/models/digits/").status_code == 404
        assert "digits" not in text_of(client, "/models/")
