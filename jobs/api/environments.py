"""The API of a workspace's own environments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from environments import changes, lifecycle
from environments.catalog import curated_version
from environments.kinds.all_kinds import kind_named
from environments.models import EnvironmentVersion
from environments.states import EnvironmentKind
from jobs.api.base import JobsView
from jobs.api.environment_serializers import (
    CloneSerializer,
    EnvironmentDetailSerializer,
    EnvironmentVersionSerializer,
    OutdatedSerializer,
)
from jobs.builds.node_environments import node_environments_of
from jobs.hub_files.fetch_orders import request_fetch
from jobs.hub_files.stored_parts import hub_files_of
from jobs.sources.environment_deletion import delete_unused
from jobs.sources.own_environments import clone_source, find_environment, find_version
from jobs.version_builds.making_display import making_context
from trainhub_launch.errors import SpecError
from trainhub_launch.fields import Fields
from workspaces.access import Principal

MAX_DIGITS = 9


def create(principal: Principal, body: object) -> dict[str, Any]:
    """Returns the version that the body of a request describes, as the API shows it. Raises SpecError."""
    fields = _fields(body)
    name = fields.text("name", required=True)
    kind_name = fields.text("kind", EnvironmentKind.PIP)
    kind = kind_named(kind_name)
    python = fields.text("python") if kind.has_python else ""
    source = kind.read_body(fields)
    fields.finish()
    return _shown(changes.create_version(principal, name, kind_name, source, python), principal)


class EnvironmentDetail(JobsView):
    @extend_schema(responses=EnvironmentDetailSerializer)
    def get(self, request: Request, name: str) -> Response:
        """An environment of the workspace with its versions."""
        environment = find_environment(self.principal(request).workspace, name)
        if environment is None:
            raise Http404
        return Response(EnvironmentDetailSerializer(environment).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Delete an environment: owners, and who made it. Refused while a run that is not over needs it;
        versions that runs have used stay readable, and the name stays taken."""
        principal = self.principal(request)
        environment = find_environment(principal.workspace, name)
        if environment is None or environment.deleted_at is not None:
            raise Http404
        delete_unused(principal, environment)
        return Response(status=204)


class EnvironmentVersionDetail(JobsView):
    @extend_schema(responses=EnvironmentVersionSerializer)
    def get(self, request: Request, name: str, number: int) -> Response:
        """A version with its lock, and how far it is on each node; of a curated environment, too."""
        principal = self.principal(request)
        version = curated_version(name) if number == 1 else None
        version = version or find_version(principal.workspace, name, number)
        if version is None:
            raise Http404
        return Response(_shown(version, principal))


class EnvironmentVersionOutdated(JobsView):
    @extend_schema(request=OutdatedSerializer, responses=EnvironmentVersionSerializer)
    def put(self, request: Request, name: str, number: int) -> Response:
        """Mark a version as outdated. Runs can still use it; the wizard and the pages of runs say so."""
        principal, version = self._version(request, name, number)
        fields = _fields(request.data)
        reason, successor = fields.text("reason", required=True), fields.text("successor")
        fields.finish()
        lifecycle.mark_outdated(principal, version, reason, successor)
        return Response(_shown(self._version(request, name, number)[1], principal))

    @extend_schema(responses=EnvironmentVersionSerializer)
    def delete(self, request: Request, name: str, number: int) -> Response:
        """Take the mark back."""
        principal, version = self._version(request, name, number)
        lifecycle.unmark_outdated(principal, version)
        return Response(_shown(self._version(request, name, number)[1], principal))

    def _version(self, request: Request, name: str, number: int) -> tuple[Principal, EnvironmentVersion]:
        principal = self.principal(request)
        version = find_version(principal.workspace, name, number)
        if version is None:
            raise Http404
        return principal, version


class EnvironmentVersionFetch(JobsView):
    @extend_schema(request=None, responses={202: EnvironmentVersionSerializer})
    def post(self, request: Request, name: str, number: int) -> Response:
        """Have the hub fetch those files of the version that it lacks, so that their index or registry may go
        away. `hub_files` says how far that is."""
        principal = self.principal(request)
        version = find_version(principal.workspace, name, number)
        if version is None:
            raise Http404
        request_fetch(principal, version)
        return Response(_shown(version, principal), status=202)


class EnvironmentClone(JobsView):
    @extend_schema(request=CloneSerializer, responses={201: EnvironmentVersionSerializer})
    def post(self, request: Request, name: str) -> Response:
        """Make an environment with the source of this one, which may be a curated one."""
        principal = self.principal(request)
        if clone_source(principal.workspace, name) is None:
            raise Http404
        fields = _fields(request.data)
        new_name, number = fields.text("new_name", required=True), fields.text("version")
        fields.finish()
        if number and not (number.isdecimal() and len(number) <= MAX_DIGITS):
            raise SpecError("version", f"{number!r:.50} is not the number of a version, such as 1")
        source = clone_source(principal.workspace, name, int(number) if number else None)
        if source is None:
            raise SpecError("version", f"{name} has no version {number}; leave it out for the newest")
        return Response(_shown(changes.clone(principal, source, new_name), principal), status=201)


def _fields(body: object) -> Fields:
    if not isinstance(body, Mapping):
        raise SpecError("body", "must be a JSON object")
    return Fields(body)


def _shown(version: EnvironmentVersion, principal: Principal) -> dict[str, Any]:
    on_nodes = node_environments_of(version, principal.workspace)
    version.builds = [item for item in on_nodes if item.state]  # type: ignore[attr-defined]
    version.hub_files = None if version.pk is None else hub_files_of(version)  # type: ignore[attr-defined]
    version.waiting = making_context(version).get("waiting_reason", "")  # type: ignore[attr-defined]
    return dict(EnvironmentVersionSerializer(version).data)
