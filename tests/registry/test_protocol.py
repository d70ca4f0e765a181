"""Who may what by MLflow's registry protocol, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from httpx import ASGITransport, AsyncClient, Response

from jobs.models import Attempt, Run
from jobs.tokens import attempt_token as job_token
from registry.aliases import set_alias
from registry.models import ModelVersion, RegisteredModel
from registry.registration import register
from registry.verifying.trainhub_verify import CERTIFICATE, SIGNATURE
from tests.people import make_contributor, make_owner, make_person, make_viewer, make_workspace, token_of
from tests.registry.builders import run_with
from tracking.mlflow.protocol.errors import EXISTS, INVALID, MISSING
from trainhub.asgi import application
from workspaces.authentication.token_text import digest
from workspaces.states import Role

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = "/api/2.0/mlflow"
ARTIFACTS = "../mlflow-artifacts/artifacts"


async def call(token: str, method: str, path: str, body: dict[str, Any] | None = None) -> Response:
    sent = {"params": body} if method == "GET" else {"json": body}
    headers = {"Authorization": f"Bearer {token}"}
    async with AsyncClient(
        transport=ASGITransport(application), base_url="http://testserver", headers=headers
    ) as client:
        return await client.request(method, f"{ROOT}/{path}", **sent)  # type: ignore[arg-type]


def prepared() -> dict[str, str]:
    """A version of run 41's and one of run 42's; tokens of everybody, and of run 41's job."""
    run, other = run_with("w.pt"), run_with("w.pt", number=42)
    for made in (run, other):
        version = register(make_workspace(), "digits", made, "w.pt", make_contributor())
    set_alias(version.model, "production", 1, make_contributor())
    token = job_token(run.pk, 1)
    Attempt.objects.create(run=run, number=1, placement=[], token_digest=digest(token))
    speech = make_workspace("speech")
    return {
        "viewer": token_of(make_viewer()),
        "contributor": token_of(make_contributor()),
        "owner": token_of(make_owner()),
        "job": token,
        "run": run.pk,
        "other": other.pk,
        "stranger": token_of(make_person("sue", Role.OWNER, speech), speech),
    }


async def told() -> dict[str, str]:
    return await sync_to_async(prepared)()


class TestPeople:
    async def test_a_viewer_reads_and_changes_nothing(self) -> None:
        who = await told()
        assert (
            await call(who["viewer"], "GET", "registered-models/get", {"name": "digits"})
        ).status_code == 200
        for method, path, body in (
            ("POST", "registered-models/create", {"name": "x"}),
            ("POST", "model-versions/create", {"name": "digits", "source": f"runs:/{who['run']}/w.pt"}),
            ("POST", "registered-models/alias", {"name": "digits", "alias": "x", "version": "1"}),
            ("DELETE", "registered-models/delete", {"name": "digits"}),
        ):
            answer = await call(who["viewer"], method, path, body)
            assert (answer.status_code, answer.json()["error_code"]) == (403, "PERMISSION_DENIED"), path

    async def test_a_contributor_registers_and_does_not_delete_or_rename(self) -> None:
        who = await told()
        body = {"name": "digits", "source": f"runs:/{who['run']}/w.pt"}
        answer = await call(who["contributor"], "POST", "model-versions/create", body)
        assert answer.json()["model_version"]["version"] == "3"
        for method, path, more in (
            ("DELETE", "model-versions/delete", {"version": "1"}),
            ("DELETE", "registered-models/delete", {}),
            ("POST", "registered-models/rename", {"new_name": "x"}),
        ):
            assert (
                await call(who["contributor"], method, path, {"name": "digits", **more})
            ).status_code == 403
            assert (await call(who["owner"], method, path, {"name": "digits", **more})).status_code == 200
            workspace = await sync_to_async(make_workspace)()
            await sync_to_async(RegisteredModel.objects.get_or_create)(workspace=workspace, name="digits")

    async def test_a_protected_alias_is_an_owners(self) -> None:
        who = await told()
        await sync_to_async(RegisteredModel.objects.update)(protected=["production"])
        body = {"name": "digits", "alias": "production", "version": "2"}
        refused, moved = [
            await call(who[name], "POST", "registered-models/alias", body)
            for name in ("contributor", "owner")
        ]
        assert (refused.json()["error_code"], moved.status_code) == ("PERMISSION_DENIED", 200)

    async def test_another_workspace_finds_nothing(self) -> None:
        who = await told()
        for path, body in (
            ("registered-models/get", {"name": "digits"}),
            ("model-versions/get", {"name": "digits", "version": "1"}),
            ("model-versions/get-download-uri", {"name": "digits", "version": "1"}),
        ):
            answer = await call(who["stranger"], "GET", path, body)
            assert (answer.status_code, answer.json()["error_code"]) == (404, "RESOURCE_DOES_NOT_EXIST")
        assert (await call(who["stranger"], "GET", "model-versions/search")).json() == {"model_versions": []}


class TestRefusals:
    @pytest.mark.parametrize(
        ("method", "path", "body", "code", "words"),
        [
            (
                "POST",
                "registered-models/rename",
                {"name": "digits", "new_name": "empty"},
                EXISTS,
                "(name=empty)",
            ),
            (
                "GET",
                "registered-models/alias",
                {"name": "empty", "alias": "latest"},
                MISSING,
                "Latest version",
            ),
            (
                "GET",
                "registered-models/alias",
                {"name": "digits", "alias": "2"},
                INVALID,
                "alias 2 not found",
            ),
            ("GET", "model-versions/get", {"name": "digits", "version": "two"}, INVALID, "got 'two'"),
            (
                "GET",
                "model-versions/get",
                {"name": "digits", "version": "9" * 10},
                INVALID,
                "must be an integer",
            ),
            ("GET", "model-versions/get", {"name": "digits"}, INVALID, "must be an integer"),
        ],
    )
    async def test_name_what_is_wrong(
        self, method: str, path: str, body: dict[str, Any], code: str, words: str
    ) -> None:
        who = await told()
        await call(who["owner"], "POST", "registered-models/create", {"name": "empty"})
        response = await call(who["owner"], method, path, body)
        assert response.json()["error_code"] == code
        assert words in response.json()["message"]

    async def test_latest_is_the_newest_version_without_being_an_alias(self) -> None:
        who = await told()
        body = {"name": "digits", "alias": "latest"}
        response = await call(who["viewer"], "GET", "registered-models/alias", body)
        assert response.json()["model_version"]["version"] == "2"

    async def test_a_search_by_a_tag_that_no_version_has_finds_none_but_those_that_are_no_prompts(
        self,
    ) -> None:
        who = await told()
        for filter_string, count in (
            ("name = 'digits' AND version_number = 1", 1),
            ("tags.`team` = 'vision'", 0),
            ("tags.`mlflow.prompt.is_prompt` != 'true'", 2),
        ):
            response = await call(who["viewer"], "GET", "model-versions/search", {"filter": filter_string})
            assert len(response.json().get("model_versions", [])) == count, filter_string


class TestFiles:
    async def test_of_a_version_are_listed_with_its_papers_and_found_by_path(self) -> None:
        who = await told()
        response = await call(who["viewer"], "GET", ARTIFACTS, {"path": "models/digits/1"})
        assert [(item["path"], item["is_dir"]) for item in response.json()["files"]] == [
            (CERTIFICATE, False),
            (SIGNATURE, False),
            ("w.pt", False),
        ]
        response = await call(who["viewer"], "GET", f"{ARTIFACTS}/models/digits/1/{CERTIFICATE}")
        assert response.json()["model"]["number"] == 1

    @pytest.mark.parametrize(
        ("path", "name"), [("1/other.pt", "'other.pt'"), ("3/w.pt", "'3'"), ("one/w.pt", "'one'")]
    )
    async def test_what_is_not_there_is_named(self, path: str, name: str) -> None:
        who = await told()
        response = await call(who["viewer"], "GET", f"{ARTIFACTS}/models/digits/{path}")
        assert (response.status_code, response.json()["error_code"]) == (404, MISSING)
        assert name in response.json()["message"]

    async def test_do_not_change(self) -> None:
        who = await told()
        response = await call(who["owner"], "PUT", f"{ARTIFACTS}/models/digits/1/w.pt")
        assert response.json()["error_code"] == INVALID
        assert "register a new version instead" in response.json()["message"]


class TestJob:
    async def test_registers_and_names_what_it_has_made(self) -> None:
        who = await told()
        body = {"name": "digits", "source": f"runs:/{who['run']}/w.pt"}
        assert (await call(who["job"], "POST", "model-versions/create", body)).json()["model_version"][
            "version"
        ] == "3"
        alias = {"name": "digits", "alias": "newest", "version": "3"}
        assert (await call(who["job"], "POST", "registered-models/alias", alias)).status_code == 200

    async def test_and_leaves_the_rest_alone(self) -> None:
        who = await told()
        for method, path, body in (
            ("POST", "model-versions/create", {"name": "digits", "source": f"runs:/{who['other']}/w.pt"}),
            ("POST", "registered-models/alias", {"name": "digits", "alias": "newest", "version": "2"}),
            ("POST", "model-versions/set-tag", {"name": "digits", "version": "2", "key": "a", "value": "b"}),
            ("DELETE", "model-versions/delete", {"name": "digits", "version": "1"}),
        ):
            assert (await call(who["job"], method, path, body)).status_code == 403, path
        assert await sync_to_async(ModelVersion.objects.count)() == 2

    async def test_describes_models_that_it_has_made_a_version_of(self) -> None:
        who = await told()
        letters = {"name": "letters", "source": f"runs:/{who['other']}/w.pt"}
        await call(who["owner"], "POST", "registered-models/create", {"name": "letters"})
        assert (await call(who["owner"], "POST", "model-versions/create", letters)).status_code == 200
        for name, status in (("digits", 200), ("letters", 403)):
            tag, text = {"name": name, "key": "a", "value": "b"}, {"name": name, "description": "of run 41"}
            assert (await call(who["job"], "POST", "registered-models/set-tag", tag)).status_code == status
            assert (await call(who["job"], "PATCH", "registered-models/update", text)).status_code == status
            assert (
                await call(who["job"], "DELETE", "registered-models/delete-tag", tag)
            ).status_code == status

    async def test_its_token_ends_with_its_attempt(self) -> None:
        who = await told()
        await sync_to_async(
            lambda: Attempt.objects.update(ended_at=Run.objects.get(pk=who["run"]).created_at)
        )()
        assert (await call(who["job"], "GET", "registered-models/get", {"name": "digits"})).status_code == 401
