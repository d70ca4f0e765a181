"""MLflow's calls for workspaces (3.10 and newer), which are ours: their names are the short names.

They name no workspace, so a token for all workspaces of its person needs no header here."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from jobs.tokens import PREFIX as JOB_PREFIX
from tracking.callers import token_text
from tracking.mlflow.protocol.errors import MISSING, UNAUTHENTICATED, MlflowError
from tracking.mlflow.protocol.fields import JsonObject
from tracking.mlflow.protocol.http import json_response, mlflow_errors, require_caller
from workspaces import tokens
from workspaces.http.threads import in_thread
from workspaces.models import Workspace


@mlflow_errors
async def list_workspaces(request: Request) -> Response:
    rows = await _visible(request)
    return json_response({"workspaces": [_workspace_json(row) for row in rows]})


@mlflow_errors
async def get_workspace(request: Request) -> Response:
    name = request.path_params["name"]
    row = next((row for row in await _visible(request) if row.slug == name), None)
    if row is None:
        raise MlflowError(MISSING, f"Workspace '{name[:100]}' not found")
    return json_response({"workspace": _workspace_json(row)})


async def _visible(request: Request) -> list[Workspace]:
    """Returns the workspaces in which the caller may act. Raises MlflowError, and TokenRefused."""
    text = token_text(request.scope)
    if text is None or text.startswith(JOB_PREFIX):
        return [(await require_caller(request)).workspace]
    tokens_workspaces = await in_thread(tokens.workspaces_of, text, request.method, request.url.path)
    if tokens_workspaces is None:
        raise MlflowError(UNAUTHENTICATED, "This token is not valid here; make a new one under Settings.")
    return tokens_workspaces


def _workspace_json(row: Workspace) -> JsonObject:
    return {"name": row.slug, "description": row.name}
