from __future__ import annotations

from django.urls import path

from jobs.builds.models import EnvironmentBuild, is_build_id
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


class BuildConsumer(TopicConsumer):
    """Sends the changes of one build, and its log, to those who may see it."""

    async def allowed(self) -> bool:
        principal = await principal_of_scope(self.scope)
        self.build = self.scope["url_route"]["kwargs"]["build"]
        if principal is None or not is_build_id(self.build):
            return False
        return await EnvironmentBuild.visible_to(principal.workspace).filter(pk=self.build).aexists()

    def topics(self) -> list[str]:
        return [run_topic(self.build)]


class RunListConsumer(TopicConsumer):
    """Sends the changes of all runs in the user's workspace."""

    async def allowed(self) -> bool:
        principal = await principal_of_scope(self.scope)
        self.workspace = principal.workspace.pk if principal else 0
        return principal is not None

    def topics(self) -> list[str]:
        return [runs_topic(self.workspace)]


routes = [
    path("ws/runs/", RunListConsumer.as_asgi()),
    path("ws/runs/<str:run>/", RunConsumer.as_asgi()),
    path("ws/builds/<str:build>/", BuildConsumer.as_asgi()),
]
