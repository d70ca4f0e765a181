"""Authentication of nodes on raw routes."""

from __future__ import annotations

from starlette.requests import Request

from clusters.enrolment.node_tokens import node_for_token
from clusters.models import Node
from jobs.node_api.node_session import NodeSession, sessions
from workspaces.access import Principal
from workspaces.http.problems import unauthorized
from workspaces.http.scopes import bearer, principal_of_scope
from workspaces.http.threads import in_thread


async def require_session(request: Request) -> NodeSession:
    """Returns the session of the node whose token the request bears; raises Problem 401 where there is none.

    A revoked token may work for about a second longer, until this process compares its nodes with the
    database."""
    token = bearer(request.scope) or ""
    session = sessions.recall(token)
    if session is None and token:
        # The database may only be asked outside the event loop, which serves all nodes.
        session = await in_thread(sessions.look_up, token)
    if session is None:
        raise unauthorized("A node's token is needed.")
    return session


async def require_node(request: Request) -> Node:
    """Returns the node whose token the request bears; raises Problem 401 where there is none."""
    return (await require_session(request)).node


async def require_node_or_person(request: Request) -> Node | Principal:
    """Returns the node or the person who sent the request; raises Problem 401 where there is neither."""
    # People first: their sessions and tokens are known without a query of the nodes' table.
    principal = await principal_of_scope(request.scope)
    if principal is not None:
        return principal
    token = bearer(request.scope)
    node = await in_thread(node_for_token, token) if token else None
    if node is None:
        raise unauthorized("Sign in, or give a token.")
    return node
