from __future__ import annotations

from django.urls import path

from jobs.models import Run
from live.consumers import TopicConsumer
from live.topics import run_topic, runs_topic
from workspaces.http.scopes import principal_of_scope


class RunConsumer(TopicConsumer):
    """Sends the changes of one run to members of its workspace."""

    async def allowed(self) -> bool:
        principal = await principal_of_scope(self.scope)
        if principal is None:
            return False
        self.run = self.scope["url_route"]["kwargs"]["run"]
        return await Run.objects.for_workspace(principal.workspace).filter(pk=self.run).aexists()

    def topics(self) -> list[str]:
        return [run_topic(self.run)]


class RunListConsumer(TopicConsumer):
    """Sends the changes of all runs in the user's workspace."""

    async def allowed(self) -> bool:
        principal = await principal_of_scope(self.scope)
        self.workspace = principal.workspace.pk if principal else 0
        return principal is not None

    def topics(self) -> list[str]:
        return [runs_topic(self.workspace)]


routes = [path("ws/runs/", RunListConsumer.as_asgi()), path("ws/runs/<str:run>/", RunConsumer.as_asgi())]
