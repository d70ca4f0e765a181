"""Decorators and helpers for the handlers of MLflow's protocol: arguments, callers and JSON responses."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import cast

import orjson
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from tracking.callers import Caller, caller_of
from tracking.mlflow.protocol.errors import BUSY, DENIED, INTERNAL, INVALID, UNAUTHENTICATED, MlflowError
from tracking.mlflow.protocol.fields import CallArgs
from trainhub_launch.errors import SpecError
from workspaces.http.problems import Problem
from workspaces.http.requests import read_body
from workspaces.http.threads import in_thread
from workspaces.object_store.errors import StoreUnavailable
from workspaces.states import Role
from workspaces.tokens import TokenRefused

log = logging.getLogger(__name__)
# Limit of a request's JSON body; MLflow has the same.
MAX_BODY_BYTES = 1024 * 1024
Handler = Callable[[Request], Awaitable[Response]]


def mlflow_errors(handler: Handler) -> Handler:
    """Returns `handler` with its exceptions converted to MLflow's error responses."""

    @wraps(handler)
    async def guarded(request: Request) -> Response:
        try:
            return await handler(request)
        except MlflowError as error:
            return error_response(error)
        # A problem keeps its HTTP status, such as 413 for a body that is too large.
        except Problem as problem:
            code = INVALID if problem.status < 500 else INTERNAL
            return error_response(MlflowError(code, str(problem), status=problem.status))
        except SpecError as error:
            return error_response(MlflowError(INVALID, f"{error.field}: {error.message}"))
        except TokenRefused as error:
            return error_response(
                MlflowError(UNAUTHENTICATED if error.status == 401 else DENIED, error.message)
            )
        except PermissionDenied as error:
            return error_response(MlflowError(DENIED, str(error) or "You may not do this."))
        except StoreUnavailable as error:
            return error_response(MlflowError(INTERNAL, str(error), status=503))
        # The client has closed the connection, so nobody is left to read a response.
        except ClientDisconnect:
            raise
        # With 503 MLflow's client tries again, so that a database that is briefly locked does not end a
        # training.
        except DatabaseError as error:
            log.exception("the database failed under %s", request.url.path)
            sentence = f"The hub's database does not answer as it should; try again. ({type(error).__name__})"
            return error_response(MlflowError(BUSY, sentence))
        except Exception:
            log.exception("%s failed", request.url.path)
            return error_response(
                MlflowError(
                    INTERNAL, "TrainHub itself failed; the operator finds the traceback in the server log."
                )
            )

    return guarded


def handler_for(function: Callable[[Caller, CallArgs], object], *, role: Role = Role.VIEWER) -> Handler:
    """Returns an ASGI handler that calls the blocking `function(caller, args)` in a thread.

    `args` are the members of the JSON body, or the query parameters of a GET (a list for a repeated name),
    and the path parameters. The response is the returned value as JSON; {} for None.
    """

    @mlflow_errors
    async def handler(request: Request) -> Response:
        caller = await require_caller(request, role)
        args = query_args(request) if request.method in ("GET", "HEAD") else await json_body(request)
        # Path parameters replace members of the body with the same name.
        return json_response(await in_thread(function, caller, args | dict(request.path_params)))

    return handler


async def require_caller(request: Request, role: Role = Role.VIEWER) -> Caller:
    """Returns the authenticated caller. Raises MlflowError: 401 without one, 403 for a role below `role`."""
    caller = await caller_of(request.scope)
    if caller is None:
        raise MlflowError(
            UNAUTHENTICATED,
            (
                "Set MLFLOW_TRACKING_TOKEN to one of your API tokens (Settings); a job's own token ends with "
                "its attempt."
            ),
        )
    if not caller.may(role):
        sentence = (
            f"This needs the role {role}; you are {caller.role} of {caller.workspace}. Ask one of its owners."
        )
        raise MlflowError(DENIED, sentence)
    return caller


async def json_body(request: Request, max_bytes: int = MAX_BODY_BYTES) -> CallArgs:
    data = await read_body(request, max_bytes)
    try:
        args = orjson.loads(data) if data else {}
    except orjson.JSONDecodeError as error:
        raise MlflowError(INVALID, f"The body is not JSON: {error}.") from error
    if not isinstance(args, dict):
        raise MlflowError(INVALID, "The body must be a JSON object.")
    return cast("CallArgs", args)


def query_args(request: Request) -> CallArgs:
    """Returns the query parameters; a name that occurs more than once has the list of its values."""
    args: CallArgs = {}
    for name, value in request.query_params.multi_items():
        if name in args:
            args[name] = [*(args[name] if isinstance(args[name], list) else [args[name]]), value]
        else:
            args[name] = value
    return args


def json_response(data: object, status: int = 200) -> Response:
    return Response(orjson.dumps({} if data is None else data), status, media_type="application/json")


def error_response(error: MlflowError) -> Response:
    headers = {"WWW-Authenticate": 'Bearer realm="TrainHub"'} if error.status == 401 else None
    return Response(
        orjson.dumps({"error_code": error.code, "message": error.message}),
        error.status,
        headers,
        "application/json",
    )
