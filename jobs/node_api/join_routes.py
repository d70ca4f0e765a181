"""Routes for machines that join as nodes: the certificate to trust, the package to install, and the
enrolment."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response

from clusters.enrolment import join
from clusters.enrolment.node_tokens import EnrolmentError
from clusters.enrolment.node_wheel import node_wheel as package
from trainhub_launch.json_types import JsonObject
from workspaces.authentication import login_throttle
from workspaces.authentication.delays import TooManyAttempts
from workspaces.http.problems import FieldProblem, Problem, not_found, problem_responses
from workspaces.http.requests import read_body
from workspaces.http.threads import in_thread

MAX_BYTES = 16 * 1024
GUESSER = "a machine that joins"


@problem_responses
async def ca(_: Request) -> Response:
    """Returns the certificate of the hub's own authority in PEM. The client compares its fingerprint with the
    one in the join token."""
    # Public on purpose: whoever has no trust in this hub yet cannot send credentials. The fingerprint in the
    # join token protects against a forged answer.
    pem = await in_thread(join.ca_pem)
    if not pem:
        raise not_found("This hub has no authority of its own: trust its certificate as any other.")
    return Response(pem, media_type="application/x-pem-file", headers={"X-Content-Type-Options": "nosniff"})


@problem_responses
async def wheel(request: Request) -> Response:
    """Returns the wheel that a node installs. pip requires the file's name in the URL."""
    file = await in_thread(package)
    name = request.path_params.get("name")
    if file is None:
        raise not_found("This hub has no package for nodes; the hub's log says why it could not be built.")
    if name not in (None, file.name):
        raise not_found(f"The package of this hub is {file.name}.")
    return FileResponse(file, media_type="application/octet-stream", filename=file.name)


@problem_responses
async def enrol(request: Request) -> Response:
    address = request.client.host if request.client else ""
    fields = await _read_fields(request)
    return JSONResponse(await in_thread(_enrol, fields, address))


async def _read_fields(request: Request) -> JsonObject:
    try:
        fields = json.loads(await read_body(request, MAX_BYTES))
    except ValueError as error:
        raise Problem(400, "Not JSON", "Send JSON with token, name, hostname and replace.") from error
    if not isinstance(fields, dict):
        raise Problem(400, "Bad request", "Send a JSON object with token, name, hostname and replace.")
    for field, kind, max_length in (
        ("token", str, 500),
        ("name", str, 200),
        ("hostname", str, 255),
        ("replace", bool, 0),
    ):
        value = fields.setdefault(field, kind())
        if not isinstance(value, kind) or (
            # PostgreSQL refuses the character NUL in texts.
            isinstance(value, str) and (len(value) > max_length or "\x00" in value)
        ):
            shape = "true or false" if kind is bool else f"a string of at most {max_length} characters"
            raise FieldProblem(400, "Bad request", field, f"must be {shape}")
    return fields


def _enrol(fields: dict[str, Any], address: str) -> dict[str, str]:
    _count_unknown(fields["token"], address)
    try:
        joined = join.join(
            fields["token"], fields["name"], fields["hostname"], replace=fields["replace"], address=address
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
    """Counts attempts with unknown tokens for the rate limit. Known tokens do not count, so that any number
    of machines may join from behind one address."""
    if join.is_join_token(token):
        return
    try:
        login_throttle.count_attempt(GUESSER, address)
    except TooManyAttempts as delay:
        wait = delay.retry_after_s
        raise Problem(
            429,
            "Too many attempts",
            f"Too many unknown tokens came from {address}; wait {wait} s.",
            Retry_After=str(wait),
        ) from delay
