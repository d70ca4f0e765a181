"""Server information for MLflow's clients, and the error for calls that this server does not support."""

from __future__ import annotations

import re
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from jobs.transfer import methods
from tracking.mlflow.protocol.errors import NO_ENDPOINT, MlflowError
from tracking.mlflow.protocol.http import json_response, mlflow_errors, require_caller

# The MLflow release whose protocol this server implements.
VERSION = "3.17.2"
SERVER = {
    "store_type": "SqlStore",
    "workspaces_enabled": True,
    "trace_archival_enabled": False,
    "multipart_uploads_enabled": False,
    "multipart_downloads_enabled": False,
    "presigned_upload_run_id_supported": False,
    "presigned_upload_model_id_supported": False,
    "features_enabled": {"gateway": False},
}
PRESIGNED = "addresses that need no token"
# Unsupported features by the first or last segment of the path below .../mlflow/.
OUT_OF_SCOPE = {
    "traces": "traces",
    "unified-traces": "traces",
    "get-online-trace-details": "traces",
    "get-trace-artifact": "traces",
    "assessments": "assessments",
    "issues": "assessments",
    "label-schemas": "labels",
    "review-queues": "reviews",
    "datasets": "evaluation data sets",
    "scorers": "scorers",
    "gateway": "the AI gateway",
    "gateway-proxy": "the AI gateway",
    "prompt-optimization": "prompts",
    "prompts": "prompts",
    "webhooks": "webhooks",
    "workspaces": "changes of workspaces",
    "jobs": "MLflow's jobs",
    "demo": "the demo",
    "genai": "evaluation",
    "scorer": "scorers",
    "presigned": PRESIGNED,
    "presigned-download-url": PRESIGNED,
    "presigned-upload-url": PRESIGNED,
    "graphql": "GraphQL",
}
_BELOW = re.compile(r"^.*?/mlflow(?:-artifacts)?/")
SCOPE_SENTENCE = (
    "TrainHub serves MLflow's tracking, registry and artifacts, but neither traces, prompts, "
    "evaluation nor the gateway."
)


async def version(_: Request) -> Response:
    return PlainTextResponse(VERSION)


async def health(_: Request) -> Response:
    return PlainTextResponse("OK")


async def server_info(_: Request) -> Response:
    """Returns the features of this server. It needs no token, as in MLflow, because it contains no secret."""
    return json_response(SERVER)


async def unsupported_below(scope: Scope, receive: Receive, send: Send) -> None:
    """ASGI app for all other paths below the roots. Raises HTTPException 405 if the path exists for another
    method."""
    allowed = methods.allowed_methods(scope["app"].routes, scope)
    # OPTIONS is in every list, so it alone means that no route has this path.
    if allowed != ["OPTIONS"]:
        raise HTTPException(HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": ", ".join(allowed)})
    await (await unsupported(Request(scope, receive)))(scope, receive, send)


@mlflow_errors
async def unsupported(request: Request) -> Response:
    await require_caller(request)
    parts = [part for part in _BELOW.sub("", request.url.path).split("/") if part]
    kind = next((OUT_OF_SCOPE[part] for part in (*parts[:1], *parts[-1:]) if part in OUT_OF_SCOPE), None)
    reason = (
        f"This server does not offer {kind}."
        if kind
        else f"There is no {request.method} {request.url.path[:200]} here."
    )
    raise MlflowError(NO_ENDPOINT, f"{reason} {SCOPE_SENTENCE}")
