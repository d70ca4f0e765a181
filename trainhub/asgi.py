"""The ASGI application: file bytes, static files and health checks are raw ASGI routes, sockets are handled
by Channels, and everything else by Django."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import cast

from asgiref.sync import sync_to_async
from django.core.asgi import get_asgi_application
from django.db import DatabaseError, InterfaceError
from django.urls import get_resolver
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "trainhub.settings")
django_application = get_asgi_application()

# What follows needs the apps loaded.
from clusters.consumers import routes as cluster_sockets
from clusters.enrolment.node_wheel import NODE_WHEEL
from clusters.node_reports import gpu_sync, heartbeat_writer, hub_uptime
from clusters.telemetry import slice_writer
from jobs.byte_routes import report as node_report
from jobs.byte_routes import routes as job_bytes
from jobs.consumers import routes as job_sockets
from jobs.node_api.node_session import sessions
from jobs.transfer.methods import allowed_methods
from live.middleware import stack
from registry.mlflow.routes import routes as mlflow_registry
from registry.transfer.routes import routes as model_bytes
from tracking.artifacts import file_hints
from tracking.artifacts.routes import routes as artifacts
from tracking.curves.download import routes as curve_files
from tracking.metrics import compaction, point_hints
from tracking.mlflow.routes import hot as mlflow_hot
from tracking.mlflow.routes import routes as mlflow_tracking
from tracking.tensorboard.proxy import routes as tensorboard
from tracking.tensorboard.sessions import remove_leftovers
from trainhub import __version__
from trainhub.body_limit import LargeBodies
from trainhub.sdk_downloads.routes import routes as sdk_downloads
from trainhub.sdk_downloads.wheels import SDK_WHEEL
from trainhub.serving import other_servers
from trainhub.serving.hosts import HostCheck
from trainhub.static_files import HubStatic
from trainhub.web.browser_address import BrowserAddress
from trainhub.web.headers import AnswerHeaders
from trainhub.web.request_times import OpenSockets, RequestTimes
from trainhub.web.submission_pace import SubmissionPace
from workspaces import background_loop
from workspaces.authentication.sign_in_gate import SignInGate
from workspaces.http.outage_answers import OutageGate, raw_outage
from workspaces.http.problems import problem_response
from workspaces.http.scopes import principal_of_scope
from workspaces.hub_metrics.loop_lag import loop_lag_measured
from workspaces.hub_metrics.publisher import Publisher
from workspaces.own_wheels.own_wheel import build_after_start
from workspaces.stored_files.blob_uploads import uploading
from workspaces.tokens import TokenRefused

get_resolver().url_patterns  # noqa: B018 - loads every view now, so that the first page does not wait for it


async def healthz(_: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def http_problem(request: Request, error: Exception) -> Response:
    """Answers what the raw routes refuse by themselves, such as a wrong method, with problem details like
    everywhere in the API."""
    error = cast("HTTPException", error)
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        error.headers = {"Allow": ", ".join(allowed_methods(raw_routes, request.scope))}
        if request.method == "OPTIONS":
            return Response(status_code=HTTPStatus.NO_CONTENT, headers=error.headers)
    return problem_response(error.status_code, error.detail, f"{error.detail}.", headers=error.headers)


async def token_problem(_: Request, error: Exception) -> Response:
    """Answers a token that has expired, or that may only read, in the same words on every raw route."""
    error = cast("TokenRefused", error)
    title = HTTPStatus(error.status).phrase
    headers = {"WWW-Authenticate": "Bearer"} if error.status == HTTPStatus.UNAUTHORIZED else None
    return problem_response(error.status, title, error.message, headers=headers)


raw_routes = [
    node_report,
    *mlflow_hot,
    Route("/healthz", healthz),
    Mount("/static", HubStatic()),
    *mlflow_registry,
    *artifacts,
    *curve_files,
    *job_bytes,
    *model_bytes,
    *mlflow_tracking,
    *tensorboard,
    *sdk_downloads,
]


@asynccontextmanager
async def lifespan(app: object) -> AsyncIterator[None]:
    publisher = Publisher("web", __version__)
    work = (
        heartbeat_writer.write,
        slice_writer.write,
        hub_uptime.refresh,
        sessions.refresh,
        gpu_sync.refresh,
        point_hints.flush,
        compaction.fold_due,
        file_hints.flush,
        publisher.publish_due,
    )
    remove_leftovers()
    async with hub_uptime.pulse_while_serving(app), loop_lag_measured():
        # The others take this server's nodes over before its last round, so that nothing comes after it.
        with background_loop.going(*work), build_after_start(NODE_WHEEL, SDK_WHEEL), uploading():
            async with other_servers.joined():
                yield
    await sync_to_async(publisher.withdraw)()


front = Starlette(
    routes=raw_routes,
    lifespan=lifespan,
    exception_handlers={
        HTTPException: http_problem,
        TokenRefused: token_problem,
        DatabaseError: raw_outage,
        InterfaceError: raw_outage,
    },
)
# Otherwise Starlette would redirect `/healthz/` and the like before Django sees them.
front.router.redirect_slashes = False
front.router.default = BrowserAddress(
    LargeBodies(SubmissionPace(SignInGate(cast("ASGIApp", django_application))))
)
timed_front = RequestTimes(OutageGate(front))
sockets = OpenSockets(stack([*job_sockets, *cluster_sockets], principal_of_scope))


async def route(scope: Scope, receive: Receive, send: Send) -> None:
    app: ASGIApp = sockets if scope["type"] == "websocket" else timed_front
    if "\x00" in scope.get("path", "") or b"%00" in scope.get("query_string", b""):
        # No name here holds NUL, and PostgreSQL fails on it instead of finding nothing.
        nothing = "/api/nothing" if scope["path"].startswith("/api/") else "/nothing"
        scope = {**scope, "path": nothing, "raw_path": nothing.encode(), "query_string": b""}
    await app(scope, receive, send)


application = AnswerHeaders(HostCheck(route))
