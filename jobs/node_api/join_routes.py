"""The doors for machines that are no node yet: whom to believe, what to install, how to become one."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response

from clusters.enrolment import join
from clusters.enrolment.node_tokens import EnrolmentError
from clusters.enrolment.node_wheel import wheel as package
from workspaces.authentication import login_throttle
from workspaces.authentication.delays import TooManyAttempts
from workspaces.http.problems import FieldProblem, Problem, not_found, problem_responses
from workspaces.http.requests import read_body
from workspaces.http.threads import in_thread

MAX_BYTES = 16 * 1024
GUESSER = "a machine that joins"


@problem_responses
async def ca(_: Request) -> Response:
    """The hub's own authority in PEM. Whoever fetches it compares its fingerprint with that in the join
    token."""
    pem = await in_thread(join.ca_pem)
    if not pem:
        raise not_found("This hub has no authority of its own: trust its certificate as any other.")
    return Response(pem, media_type="application/x-pem-file", headers={"X-Content-Type-Options": "nosniff"})


@problem_responses
async def wheel(request: Request) -> Response:
    """The package that a node installs. pip wants to see its name in the address."""
    found = await in_thread(package)
    asked = request.path_params.get("name")
    if found is None:
        raise not_found("This hub has no package for nodes; the hub's log says why it could not be built.")
    if asked not in (None, found.name):
        raise not_found(f"The package of this hub is {found.name}.")
    return FileResponse(found, media_type="application/octet-stream", filename=found.name)


@problem_responses
async def enrol(request: Request) -> Response:
    address = request.client.host if request.client else ""
    asked = await _asked(request)
    return JSONResponse(await in_thread(_enrol, asked, address))


async def _asked(request: Request) -> dict[str, Any]:
    try:
        asked = json.loads(await read_body(request, MAX_BYTES))
    except ValueError as error:
        raise Problem(400, "Not JSON", "Send JSON with token, name, hostname and replace.") from error
    if not isinstance(asked, dict):
        raise Problem(400, "Bad request", "Send a JSON object with token, name, hostname and replace.")
    for field, kind, most in (
        ("token", str, 500),
        ("name", str, 200),
        ("hostname", str, 255),
        ("replace", bool, 0),
    ):
        value = asked.setdefault(field, kind())
        if not isinstance(value, kind) or (isinstance(value, str) and (len(value) > most or "\x00" in value)):
            shape = "true or false" if kind is bool else f"a string of at most {most} characters"
            raise FieldProblem(400, "Bad request", field, f"must be {shape}")
    return asked


def _enrol(asked: dict[str, Any], address: str) -> dict[str, str]:
    _count_unknown(asked["token"], address)
    try:
        joined = join.join(
            asked["token"], asked["name"], asked["hostname"], replace=asked["replace"], address=address
        )
    except join.TokenUnknown as error:
        raise FieldProblem(410, "Gone", error.field, error.message) from error
    except join.TokenNotUsable as error:
        raise FieldProblem(410, "Gone", error.field, error.message) from error
    except join.NameInUse as error:
        raise FieldProblem(409, "Conflict", error.field, error.message) from error
    except EnrolmentError as error:
        raise FieldProblem(400, "Bad request", error.field, error.message) from error
    return {
        "token": joined.token,
        "name": joined.node.name,
        "cluster": joined.node.cluster.name,
        "ca": join.ca_pem(),
    }


def _count_unknown(token: str, address: str) -> None:
    """Only tokens that were never made here count, so that any number of machines may join from behind one
    address."""
    if join.is_join_token(token):
        return
    try:
        login_throttle.count_attempt(GUESSER, address)
    except TooManyAttempts as delay:
        wait = delay.retry_after_s
        raise Problem(
            429,
            "Too many tries",
            f"Unknown tokens came from {address}; wait {wait} s.",
            Retry_After=str(wait),
        ) from delay
