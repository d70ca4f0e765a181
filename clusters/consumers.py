from __future__ import annotations

from channels.db import database_sync_to_async
from django.urls import path

from clusters.visibility import visible_nodes
from live.consumers import TopicConsumer
from live.topics import node_topic
from workspaces.scopes import principal_of_scope


class NodeConsumer(TopicConsumer):
    """One node, or (without a name in the address) all that the person's workspace may use."""

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


routes = [path("ws/nodes/", NodeConsumer.as_asgi()), path("ws/nodes/<slug:name>/", NodeConsumer.as_asgi())]
