"""The scopes of tokens: the table in the documents, and what the real MLflow client can do with each."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.hub import PROJECT, Hub
from tests.mlflow.clients import run_client
from workspaces.authentication.token_calls import TABLE, may_call
from workspaces.states import TokenScope

SCRIPT = """
import os, tempfile
from mlflow.tracking._tracking_service import utils

def act(name, token):
    os.environ["MLFLOW_TRACKING_TOKEN"] = token
    done = {}

    def attempt(step, call, *args, **named):
        done[step] = error_of(call, *args, **named)[1]

    attempt("experiment", mlflow.set_experiment, f"of {name}")
    try:
        with mlflow.start_run() as run:
            mlflow.log_params({"lr": 0.1})
            mlflow.log_metrics({"loss": 1.0})
            mlflow.set_tag("note", "x")
            mlflow.log_text("hello", "words.txt")
        done["log"] = client.get_run(run.info.run_id).data.metrics
        done["history"] = len(client.get_metric_history(run.info.run_id, "loss"))
        done["file"] = mlflow.artifacts.load_text(f"runs:/{run.info.run_id}/words.txt")
        own = run.info.run_id
    except MlflowException as error:
        done["log"] = error.message
        own = OTHERS
    attempt("others", client.get_run, OTHERS)
    attempt("write others", client.set_tag, OTHERS, "note", "x")
    attempt("others file", client.list_artifacts, OTHERS)
    attempt("search", client.search_runs, ["0"])
    attempt("create model", client.create_registered_model, f"model-{name}")
    attempt("register", client.create_model_version, f"model-{name}", f"runs:/{own}/words.txt", own)
    attempt("alias", client.set_registered_model_alias, f"model-{name}", "champion", "1")
    attempt("delete", client.delete_run, own)
    out[name] = done

for name, token in TOKENS.items():
    act(name, token)
"""


def test_the_documents_have_the_table() -> None:
    text = (PROJECT / "docs" / "people.md").read_text()
    lines = [f"| it may … | {' | '.join(TokenScope)} |"]
    for calls in TABLE:
        cells = " ".join("yes |" if scope in calls.scopes else "|" for scope in TokenScope)
        lines.append(f"| {calls.words} | {cells}")
    assert [line for line in text.splitlines() if line in lines] == lines


@pytest.mark.parametrize(
    ("scope", "method", "path", "is_allowed"),
    [
        (TokenScope.LOG, "GET", "/api/v1/runs/", False),
        (TokenScope.LOG, "GET", "/ws/runs/", False),
        (TokenScope.LOG, "POST", "/api/2.0/mlflow/runs/search", False),
        (TokenScope.LOG, "POST", "/api/3.0/mlflow/logged-models/search", False),
        (TokenScope.LOG, "POST", "/api/2.0/mlflow/logged-models", True),
        (TokenScope.LOG, "PATCH", "/api/2.0/mlflow/logged-models/m-1/tags", True),
        (TokenScope.LOG, "DELETE", "/api/2.0/mlflow/logged-models/m-1", False),
        (TokenScope.LOG, "POST", "/api/2.0/mlflow/runs/delete", False),
        (TokenScope.LOG, "PUT", "/api/2.0/mlflow-artifacts/artifacts/1/x/artifacts/a.txt", True),
        (TokenScope.LOG, "GET", "/api/2.0/mlflow-artifacts/artifacts/models/m/1/a.txt", False),
        (TokenScope.LOG, "POST", "/api/2.0/mlflow/runs/create\nx", False),
        (TokenScope.LOG, "POST", "/api/2.0/mlflow/registered-models/create", False),
        (TokenScope.REGISTER, "POST", "/api/2.0/mlflow/registered-models/create", True),
        (TokenScope.REGISTER, "POST", "/api/2.0/mlflow/registered-models/alias", False),
        (TokenScope.SUBMIT, "POST", "/api/v1/runs/", True),
        (TokenScope.SUBMIT, "POST", "/api/v1/runs/41/cancel/", True),
        (TokenScope.SUBMIT, "POST", "/api/v1/runs/41/purge/", False),
        (TokenScope.SUBMIT, "DELETE", "/api/v1/runs/41/", False),
        (TokenScope.SUBMIT, "PUT", "/api/v1/secrets/x/", False),
        (TokenScope.SUBMIT, "GET", "/api/v1/secrets/", True),
        (TokenScope.WRITE, "DELETE", "/api/v1/runs/41/", True),
    ],
)
def test_what_a_scope_includes(scope: TokenScope, method: str, path: str, is_allowed: bool) -> None:
    assert may_call(scope, method, path) is is_allowed


@pytest.mark.slow
def test_the_mlflow_client_does_what_the_scope_includes_and_nothing_else(
    hub: Hub,
    mlflow_python: str,
    tmp_path: Path,
) -> None:
    tokens = {scope.value: create_token(hub, scope) for scope in TokenScope}
    others = run_of_somebody_else(hub)
    script = f"OTHERS = {others!r}\nTOKENS = {tokens!r}\n" + SCRIPT
    results = run_client(mlflow_python, hub, script, tmp_path)
    logs, refused = {"log": {"loss": 1.0}, "history": 1, "file": "hello"}, "may only"
    for name in ("log", "register", "submit", "write"):
        assert results[name].items() >= logs.items(), name
        assert results[name]["experiment"] == ""
    assert refused in results["read"]["experiment"]
    for name in ("log", "register"):
        for step in ("others", "write others", "others file"):
            assert "reaches runs that its person has created" in results[name][step], (name, step)
        assert refused in results[name]["search"]
    for name in ("read", "submit", "write"):
        assert (results[name]["others"], results[name]["search"]) == ("", ""), name
    for step in ("create model", "register"):
        assert {name: bool(results[name][step]) for name in results} == {
            "read": True,
            "log": True,
            "register": False,
            "submit": True,
            "write": False,
        }, step
    for step in ("delete", "alias"):
        assert [name for name in results if not results[name][step]] == ["write"], step


def create_token(hub: Hub, scope: TokenScope) -> str:
    made = hub.manage("token", "create", "admin", "--scope", scope.value, "--days", "1")
    return made.stdout.strip().splitlines()[-1]


def run_of_somebody_else(hub: Hub) -> str:
    """Returns a run that another member has created."""
    name = "of-somebody-else"
    with hub.client() as owner:
        answer: dict[str, Any] = owner.post(
            "/api/v1/workspaces/default/members/", json={"username": name, "role": "contributor"}
        ).json()
    assert re.fullmatch(r"\S+", answer["one_time_password"])
    token = hub.manage("token", "create", name, "--days", "1").stdout.strip().splitlines()[-1]
    with hub.client(token) as other:
        answer = other.post("/api/2.0/mlflow/runs/create", json={"experiment_id": "0"}).json()
    return str(answer["run"]["info"]["run_id"])
