"""A personal token for all workspaces: each request names one; and MLflow's workspaces, which are ours."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from tests.hub import Hub
from tests.mlflow.clients import run_client
from tests.people import client_of, make_contributor, make_person, make_workspace
from workspaces import tokens
from workspaces.models import ApiToken, AuditEvent, Membership
from workspaces.states import Role, TokenScope

SCRIPT = """
out["names"] = [row.name for row in mlflow.list_workspaces()]
out["one"] = mlflow.get_workspace("vision").name
out["unknown"] = error_of(mlflow.get_workspace, "nowhere")[0]
out["without"] = error_of(client.search_experiments)[1]
mlflow.set_workspace("vision")
mlflow.set_experiment("birds")
with mlflow.start_run() as run:
    mlflow.log_metric("loss", 1.0)
    mlflow.log_text("hello", "words.txt")
out["file"] = mlflow.artifacts.load_text(f"runs:/{run.info.run_id}/words.txt")
out["run"] = run.info.run_id
mlflow.set_workspace("nowhere")
out["not there"] = error_of(client.get_run, run.info.run_id)[1]
mlflow.set_workspace("default")
out["elsewhere"] = error_of(client.get_run, run.info.run_id)[0]
os.environ["MLFLOW_TRACKING_TOKEN"] = BOUND
mlflow.set_workspace("vision")
out["bound"] = error_of(client.search_experiments)[1]
mlflow.set_workspace(None)
out["bound names"] = [row.name for row in mlflow.list_workspaces()]
"""


@pytest.fixture
def text(db: None) -> str:
    make_person("carl", Role.VIEWER, make_workspace("vision"))
    return tokens.issue(make_contributor(), None, "everywhere")[1]


def ask(text: str, **headers: str) -> Any:
    return Client(headers={"authorization": f"Bearer {text}", **headers}).get("/api/v1/me/")


class TestHeader:
    def test_names_the_workspace_and_the_role_there_counts(self, text: str) -> None:
        for slug, role in (("default", Role.CONTRIBUTOR), ("vision", Role.VIEWER)):
            who = tokens.authenticate(text, slug)
            assert who is not None
            assert (who.workspace.slug, who.role) == (slug, role)
        assert ask(text, **{"x-trainhub-workspace": "vision"}).status_code == 200

    def test_is_required(self, text: str) -> None:
        answer = ask(text)
        assert answer.status_code == 403
        assert "X-TrainHub-Workspace has to name, and the request names none" in answer.json()["detail"]

    @pytest.mark.parametrize("slug", ["other", "nowhere", "VISION", "a\x00b"])
    def test_of_a_workspace_that_is_not_theirs_looks_like_one_that_is_none(
        self, text: str, slug: str
    ) -> None:
        make_workspace("other")
        with pytest.raises(tokens.TokenNamesNoWorkspace, match="not a member of"):
            tokens.authenticate(text, slug)

    def test_of_one_that_they_have_left_is_refused(self, text: str) -> None:
        Membership.objects.filter(workspace__slug="vision").delete()
        with pytest.raises(tokens.TokenNamesNoWorkspace):
            tokens.authenticate(text, "vision")


@pytest.mark.django_db
class TestMade:
    def test_on_the_page_which_lists_it_in_every_workspace(self) -> None:
        make_person("carl", Role.VIEWER, make_workspace("vision"))
        carl = client_of(make_contributor())
        form = {"name": "everywhere", "scope": "read", "expires": "30", "workspaces": "all"}
        assert carl.post("/settings/tokens/", form).status_code == 200
        token = ApiToken.objects.get()
        assert (token.workspace, token.scope) == (None, TokenScope.READ)
        assert AuditEvent.objects.get(verb="token.created").detail == {"scope": "read", "acts_in_all": True}
        carl.post(f"/workspaces/{make_workspace('vision').pk}/choose/")
        assert "all workspaces" in carl.get("/settings/").content.decode()
        assert carl.post(f"/settings/tokens/{token.pk}/revoke/").status_code == 302
        token.refresh_from_db()
        assert token.revoked_at is not None

    def test_by_the_command(self) -> None:
        make_contributor()
        out = StringIO()
        call_command("token", "create", "carl", all_workspaces=True, stdout=out, stderr=StringIO())
        assert ApiToken.objects.get().workspace is None
        assert tokens.authenticate(out.getvalue().strip(), "default") is not None

    def test_its_owner_elsewhere_sees_it_and_cannot_revoke_it(self) -> None:
        token, _ = tokens.issue(make_contributor(), None, "everywhere")
        olivia = client_of(make_person("olivia", Role.OWNER))
        assert "everywhere" in olivia.get("/settings/tokens/all/").content.decode()
        assert olivia.post(f"/settings/tokens/all/{token.pk}/revoke/").status_code == 404


@pytest.mark.slow
def test_the_mlflow_client_chooses_by_its_own_workspaces(
    hub: Hub,
    mlflow_python: str,
    tmp_path: Path,
) -> None:
    hub.manage("workspace", "create", "Vision", "--owner", "admin", "--slug", "vision")
    everywhere = create_token(hub, "--all-workspaces")
    bound = create_token(hub)
    results = run_client(mlflow_python, hub, f"BOUND = {bound!r}\n" + SCRIPT, tmp_path, token=everywhere)
    assert {"default", "vision"} <= set(results["names"])
    assert (results["one"], results["unknown"]) == ("vision", "RESOURCE_DOES_NOT_EXIST")
    assert "the request names none" in results["without"]
    assert results["file"] == "hello"
    assert "not a member of 'nowhere'" in results["not there"]
    assert results["elsewhere"] == "RESOURCE_DOES_NOT_EXIST"
    assert "acts in the workspace default" in results["bound"]
    assert results["bound names"] == ["default"]
    with hub.client(everywhere) as program:
        program.headers["X-TrainHub-Workspace"] = "vision"
        assert program.get(f"/api/v1/runs/{results['run']}/").json()["experiment"] == "birds"


def create_token(hub: Hub, *options: str) -> str:
    return hub.manage("token", "create", "admin", "--days", "1", *options).stdout.strip().splitlines()[-1]
