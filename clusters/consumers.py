from __future__ import annotations

from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from django.urls import path

from clusters.visibility import visible_nodes
from live.consumers import TopicConsumer
from live.topics import node_topic, telemetry_topic
from workspaces.http.scopes import principal_of_scope

# Nodes that one socket may watch second by second.
MAX_NODES = 64


class NodeConsumer(TopicConsumer):
    """Sends changes of one node, or without a name in the address of all nodes that the workspace may use."""

    async def allowed(self) -> bool:
        principal = await principal_of_scope(self.scope)
        if principal is None:
            return False
        nodes = visible_nodes(principal.workspace)
        name = self.scope["url_route"]["kwargs"].get("name")
        if name is not None:
            nodes = nodes.filter(name=name)
        self.nodes: list[int] = await database_sync_to_async(list)(nodes.values_list("pk", flat=True))
        return name is None or bool(self.nodes)

    def topics(self) -> list[str]:
        return [node_topic(node) for node in self.nodes]


class TelemetryConsumer(TopicConsumer):
    """Sends the samples of `?nodes=a,b` every second. A request for a node that is not visible is refused."""

    async def allowed(self) -> bool:
        principal = await principal_of_scope(self.scope)
        query = parse_qs(self.scope["query_string"].decode("latin-1")).get("nodes", [""])[0]
        names = {name for name in query.split(",") if name}
        if principal is None or not 1 <= len(names) <= MAX_NODES:
            return False
        nodes = visible_nodes(principal.workspace).filter(name__in=names)
        self.nodes: list[int] = await database_sync_to_async(list)(nodes.values_list("pk", flat=True))
        return len(self.nodes) == len(names)

    def topics(self) -> list[str]:
        return [telemetry_topic(node) for node in self.nodes]


routes = [
    path("ws/nodes/", NodeConsumer.as_asgi()),
    path("ws/nodes/<slug:name>/", NodeConsumer.as_asgi()),
    path("ws/telemetry/", TelemetryConsumer.as_asgi()),
]
