"""Reports and claims of a node, answered by the web server that has the node's session.

All other requests of nodes need nothing but the database and the data folder, so any server answers them."""

from __future__ import annotations

from django.conf import settings
from starlette.requests import Request

from clusters.enrolment.node_tokens import node_for_token
from jobs.node_api import node_routes
from jobs.node_api.node_session import sessions
from workspaces.authentication.token_text import digest
from workspaces.http.problems import unauthorized
from workspaces.http.scopes import bearer
from workspaces.http.threads import in_thread
from workspaces.servers.forwarding import OwnedRoute, at_owner
from workspaces.servers.ring import ring
from workspaces.servers.server_registry import OtherServer


def _owner(request: Request) -> OtherServer | None:
    return ring.owner(digest(bearer(request.scope) or ""))


async def _admit(request: Request) -> None:
    """Checks the token before the body is read: whoever has none must not fill the memory of this server."""
    token = bearer(request.scope) or ""
    if not sessions.has_token(token) and await in_thread(node_for_token, token) is None:
        raise unauthorized("A node's token is needed.")


report = at_owner("report", OwnedRoute(node_routes.report, _owner, _admit, settings.MAX_REPORT_BYTES))
claim = at_owner("claim", OwnedRoute(node_routes.claim, _owner, _admit, node_routes.MAX_CLAIM_BYTES))
