"""The protocol without its client: calls over ASGI, and what they answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
from asgiref.sync import sync_to_async
from starlette.applications import Starlette

from jobs.models import Attempt, Run
from jobs.tokens import attempt_token as job_token
from tests.jobs.builders import running
from tests.people import make_contributor, make_person, make_viewer, make_workspace, principal_of, token_of
from tracking.mlflow.routes import hot, routes
from workspaces.states import Role

ROOT = "/api/2.0/mlflow"


@dataclass(frozen=True)
class MlflowErrorResponse:
    status: int
    code: str
    message: str


@dataclass
class MlflowCaller:
    """A client with a token. `call` returns the response's JSON, `expect_error` the error."""

    client: httpx.AsyncClient
    token: str
    headers: dict[str, str] = field(default_factory=dict)

    async def send(
        self, path: str, args: Mapping[str, Any] | None = None, method: str = ""
    ) -> httpx.Response:
        method = method or ("GET" if path.rpartition("/")[2].startswith("get") else "POST")
        bearer = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        url = path if path.startswith("/") else f"{ROOT}/{path}"
        if method == "GET":
            return await self.client.get(url, params=args, headers=bearer)
        return await self.client.request(method, url, json=args or {}, headers=bearer)

    async def call(
        self, path: str, args: Mapping[str, Any] | None = None, method: str = ""
    ) -> dict[str, Any]:
        response = await self.send(path, args, method)
        assert response.status_code == 200, response.text
        return dict(response.json())

    async def expect_error(
        self, path: str, args: Mapping[str, Any] | None = None, method: str = ""
    ) -> MlflowErrorResponse:
        return error_response(await self.send(path, args, method))

    async def run(self, experiment: str = "0", **more: Any) -> str:
        run = await self.call("runs/create", {"experiment_id": experiment, **more})
        return str(run["run"]["info"]["run_id"])


def error_response(response: httpx.Response) -> MlflowErrorResponse:
    assert response.status_code >= 400, response.text
    body = response.json()
    return MlflowErrorResponse(response.status_code, body["error_code"], body["message"])


def open_client() -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(Starlette(routes=[*hot, *routes])), base_url="http://hub:8000"
    )


@sync_to_async
def contributor_token() -> str:
    return token_of(make_contributor())


@sync_to_async
def viewer_token() -> str:
    return token_of(make_viewer())


@sync_to_async
def other_workspace_token() -> str:
    """Of a contributor of another workspace."""
    other = make_workspace("other")
    return token_of(make_person("otto", Role.CONTRIBUTOR, other), other)


@sync_to_async
def job_with_token(**spec: Any) -> tuple[Run, str]:
    """A job that runs, and the token of its attempt."""
    _, run = running(principal_of(make_contributor()), **spec)
    assert Attempt.objects.filter(run=run).exclude(token_digest="").exists()
    return run, job_token(run.pk, run.attempt)
