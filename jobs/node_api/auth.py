"""Authentication of nodes on raw routes."""

from __future__ import annotations

from starlette.requests import Request

from clusters.enrolment.node_tokens import node_of_token
from clusters.models import Node
from clusters.node_reports import node_auth_cache
from workspaces.access import Principal
from workspaces.http.problems import unauthorized
from workspaces.http.scopes import bearer, principal_of_scope
from workspaces.http.threads import in_thread


async def require_node(request: Request) -> Node:
    """Returns the node whose token the request bears; raises Problem 401 where there is none.

    A revoked token may work for about a second longer, until this process compares its cache with the
    database."""
    text = bearer(request.scope) or ""
    node = node_auth_cache.recall(text)
    if node is None and text:
        node = await in_thread(node_auth_cache.look_up, text)
    if node is None:
        raise unauthorized("A node's token is needed.")
    return node


async def require_node_or_person(request: Request) -> Node | Principal:
    """Returns the node or the person who sent the request; raises Problem 401 where there is neither."""
    principal = await principal_of_scope(request.scope)
    if principal is not None:
        return principal
    text = bearer(request.scope)
    node = await in_thread(node_of_token, text) if text else None
    if node is None:
        raise unauthorized("Sign in, or give a token.")
    return node
