"""The API of builds: orders to nodes to make an environment before a run needs it."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.base import JobsView
from jobs.api.environment_serializers import BuildRequestSerializer, BuildSerializer
from jobs.builds.build_requests import (
    cancel_build,
    find_build,
    newest_builds,
)
from jobs.builds.build_targets import BuildTarget, find_build_target
from jobs.models import EnvironmentBuild
from jobs.version_builds.making_requests import request_target
from trainhub_launch.errors import SpecError
from trainhub_launch.fields import Fields
from workspaces.access import Principal


class EnvironmentBuildRequest(JobsView):
    @extend_schema(request=BuildRequestSerializer, responses={202: BuildSerializer(many=True)})
    def post(self, request: Request, name: str, version: str) -> Response:
        """Order nodes to build this version, own or curated. Where the same build waits or runs already, the
        answer holds that one."""
        principal = self.principal(request)
        target = _target(principal, name, version)
        if not isinstance(request.data, Mapping):
            raise SpecError("body", "must be a JSON object")
        fields = Fields(request.data)
        nodes = fields.raw("nodes")
        fields.finish()
        if nodes is not None and not (
            isinstance(nodes, list) and all(isinstance(node, str) for node in nodes)
        ):
            raise SpecError("nodes", 'must be a list of names of nodes, such as ["gpu-1", "gpu-2"]')
        builds = request_target(principal, target, nodes)
        return Response(BuildSerializer(builds, many=True).data, status=202)


class EnvironmentBuildList(JobsView):
    @extend_schema(responses=BuildSerializer(many=True))
    def get(self, request: Request, name: str, version: str) -> Response:
        """The newest builds of this version that the workspace has ordered, the newest first."""
        principal = self.principal(request)
        target = _target(principal, name, version)
        return Response(BuildSerializer(newest_builds(principal.workspace, target), many=True).data)


class EnvironmentBuildDetail(JobsView):
    @extend_schema(responses=BuildSerializer)
    def get(self, request: Request, name: str, version: str, build: str) -> Response:
        """One build."""
        return Response(BuildSerializer(_build(self.principal(request), name, version, build)).data)


class EnvironmentBuildCancel(JobsView):
    @extend_schema(request=None, responses={202: BuildSerializer})
    def post(self, request: Request, name: str, version: str, build: str) -> Response:
        """Cancel a build: it ends with all its processes, and nothing half-made is used."""
        principal = self.principal(request)
        instance = _build(principal, name, version, build)
        cancel_build(principal, instance.pk)
        return Response(BuildSerializer(_build(principal, name, version, build)).data, status=202)


def _target(principal: Principal, name: str, version: str) -> BuildTarget:
    target = find_build_target(principal.workspace, name, version)
    if target is None:
        raise Http404
    return target


def _build(principal: Principal, name: str, version: str, build_id: str) -> EnvironmentBuild:
    build = find_build(principal.workspace, build_id)
    if build is None or (build.name, build.version) != (name, version):
        raise Http404
    return build
