"""Authentication of people on raw routes; nodes are authenticated by `jobs.node_api.auth`."""

from __future__ import annotations

from starlette.requests import Request

from workspaces.access import Principal
from workspaces.http.problems import unauthorized
from workspaces.http.scopes import principal_of_scope


async def require_person(request: Request) -> Principal:
    """Returns the person who sent the request, by token or session; raises Problem 401 where there is
    none."""
    principal = await principal_of_scope(request.scope)
    if principal is None:
        raise unauthorized("Sign in, or give a token.")
    return principal
