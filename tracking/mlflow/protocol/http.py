"""How a call by the MLflow protocol comes in and is answered: JSON both ways, every answer in one write."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, cast

import orjson
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from tracking.callers import Caller, caller_of
from tracking.mlflow.protocol.errors import BUSY, DENIED, INTERNAL, INVALID, UNAUTHENTICATED, MlflowError
from trainhub_launch.errors import SpecError
from workspaces.http.problems import Problem
from workspaces.http.requests import read_body
from workspaces.http.threads import in_thread
from workspaces.states import Role
from workspaces.tokens import TokenRefused

log = logging.getLogger(__name__)
MOST_BYTES = 1024 * 1024
"""Of a request's JSON, as in MLflow."""
Asked = dict[str, Any]
Handler = Callable[[Request], Awaitable[Response]]


def door(handler: Handler) -> Handler:
    """Turn refusals into MLflow's errors."""

    @wraps(handler)
    async def guarded(request: Request) -> Response:
        try:
            return await handler(request)
        except MlflowError as error:
            return refusal(error)
        except Problem as problem:
            code = INVALID if problem.status < 500 else INTERNAL
            return refusal(MlflowError(code, str(problem), status=problem.status))
        except SpecError as error:
            return refusal(MlflowError(INVALID, f"{error.field}: {error.message}"))
        except TokenRefused as error:
            return refusal(MlflowError(UNAUTHENTICATED if error.status == 401 else DENIED, error.message))
        except PermissionDenied as error:
            return refusal(MlflowError(DENIED, str(error) or "You may not do this."))
        except ClientDisconnect:
            raise
        except DatabaseError as error:
            log.exception("the database failed under %s", request.url.path)
            sentence = f"The hub's database does not answer as it should; try again. ({type(error).__name__})"
            return refusal(MlflowError(BUSY, sentence))
        except Exception:
            log.exception("%s failed", request.url.path)
            return refusal(
                MlflowError(
                    INTERNAL, "TrainHub itself failed; the operator finds the traceback in the server log."
                )
            )

    return guarded


def call(work: Callable[[Caller, Asked], Any], *, role: Role = Role.VIEWER) -> Handler:
    """A door for blocking `work(caller, asked)`: `asked` is the body's JSON, or the query of a GET (repeated
    names: lists).

    The answer is what `work` returns, as JSON.
    """

    @door
    async def handler(request: Request) -> Response:
        who = await caller(request, role)
        asked = query(request) if request.method in ("GET", "HEAD") else await body(request)
        return answer(await in_thread(work, who, asked | dict(request.path_params)))

    return handler


async def caller(request: Request, role: Role = Role.VIEWER) -> Caller:
    """Who asks, or 401; 403 where their role is below `role`."""
    found = await caller_of(request.scope)
    if found is None:
        raise MlflowError(
            UNAUTHENTICATED,
            (
                "Set MLFLOW_TRACKING_TOKEN to an API token of yours (Settings); a job's own token ends with "
                "its attempt."
            ),
        )
    if not found.may(role):
        sentence = (
            f"This needs the role {role}; you are {found.role} of {found.workspace}. Ask one of its owners."
        )
        raise MlflowError(DENIED, sentence)
    return found


async def body(request: Request, most: int = MOST_BYTES) -> Asked:
    data = await read_body(request, most)
    try:
        told = orjson.loads(data) if data else {}
    except orjson.JSONDecodeError as error:
        raise MlflowError(INVALID, f"The body is not JSON: {error}.") from error
    if not isinstance(told, dict):
        raise MlflowError(INVALID, "The body must be a JSON object.")
    return cast("Asked", told)


def query(request: Request) -> Asked:
    """Each name's value; its list of values where it is given more than once."""
    found: Asked = {}
    for name, value in request.query_params.multi_items():
        if name in found:
            found[name] = [*(found[name] if isinstance(found[name], list) else [found[name]]), value]
        else:
            found[name] = value
    return found


def answer(data: Any, status: int = 200) -> Response:
    return Response(orjson.dumps({} if data is None else data), status, media_type="application/json")


def refusal(error: MlflowError) -> Response:
    headers = {"WWW-Authenticate": 'Bearer realm="TrainHub"'} if error.status == 401 else None
    return Response(
        orjson.dumps({"error_code": error.code, "message": error.message}),
        error.status,
        headers,
        "application/json",
    )
