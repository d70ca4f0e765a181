"""Snapshots of source folders, environments and examples, from which runs are made."""

from __future__ import annotations

from django.conf import settings
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from clusters.visibility import visible_nodes
from environments.catalog import SYSTEM
from environments.curated import CURATED, INSTALLS, succession_notice
from jobs.api.base import JobsView
from jobs.api.catalog_serializers import (
    EnvironmentSerializer,
    ExampleSerializer,
    FetchedCommitSerializer,
    GitSourceSerializer,
    SnapshotSerializer,
    SnapshotUploadSerializer,
)
from jobs.api.environment_serializers import EnvironmentVersionSerializer, NewVersionSerializer
from jobs.api.environments import create
from jobs.api.zip_body import FORM_BYTES, WindowsZipParser, ZipParser, too_large
from jobs.sources import git_sources, snapshots
from jobs.sources.own_environments import own_environments
from trainhub_launch.errors import SpecError
from trainhub_launch.fields import Fields
from trainhub_launch.spec_reader import read_git_source
from workspaces.api.problems import ApiProblem
from workspaces.models import Workspace


class SnapshotList(JobsView):
    parser_classes = [MultiPartParser, ZipParser, WindowsZipParser]

    @extend_schema(
        request={
            "multipart/form-data": SnapshotUploadSerializer,
            ZipParser.media_type: OpenApiTypes.BINARY,
        },
        responses={201: SnapshotSerializer},
    )
    def post(self, request: Request) -> Response:
        """Store a source folder as a snapshot, sent as a zip: as the body (Content-Type: application/zip), or
        in the form field `file`. The same content always gives the same snapshot."""
        # Checked before `request.FILES`, which would first store the whole body in a temporary file.
        length = request.headers.get("Content-Length", "")
        if length.isdecimal() and int(length) > settings.MAX_SNAPSHOT_BYTES + FORM_BYTES:
            raise too_large()
        file = request.FILES.get("file")
        if file is None:
            message = (
                "send the source folder as a zip in the form field 'file' (curl -F file=@code.zip), or as "
                "the body with Content-Type: application/zip (curl --data-binary @code.zip)"
            )
            raise ApiProblem(400, f"file: {message}", [("file", message)])
        snapshot = snapshots.from_zip(file, self.principal(request))
        return Response(SnapshotSerializer(snapshot).data, status=201)


class GitSnapshotList(JobsView):
    @extend_schema(request=GitSourceSerializer, responses={201: FetchedCommitSerializer})
    def post(self, request: Request) -> Response:
        """Fetch a folder of a git repository now and store it as a snapshot. The answer's `source` is that of
        a spec: a run of it gets exactly these files."""
        fields = Fields(request.data)
        fields.text("type", "git")
        source = read_git_source(fields)
        fields.finish()
        if source.is_fetched:
            raise SpecError("commit", "is set by the hub; leave commit and id out, and name a commit as ref")
        who = self.principal(request)
        try:
            source = git_sources.fetch(source, who)
        except SpecError as error:
            raise SpecError(error.field.removeprefix("source."), error.message) from error
        commit = git_sources.fetched(source, who.workspace)
        return Response(FetchedCommitSerializer(commit).data, status=201)


class EnvironmentList(JobsView):
    @extend_schema(responses=EnvironmentSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The workspace's own environments in their newest version, the curated ones, and the Python
        interpreters installed on the workspace's nodes."""
        workspace = self.principal(request).workspace
        own: list[dict[str, object]] = [
            {
                "name": row.environment.name,
                "version": str(row.newest.number),
                "kind": row.newest.kind,
                "requirements": row.packages,
                "nodes": [],
                "state": row.newest.state,
                "notice": row.notice,
                "package_count": row.newest.package_count,
                "download_bytes": row.newest.download_bytes,
                "last_used_at": row.last_used_at,
            }
            for row in own_environments(workspace)
        ]
        curated = [
            {
                "name": item.name,
                "version": item.version,
                "kind": item.kind,
                "requirements": item.requirements,
                "nodes": [],
                "notice": succession_notice(item.name),
                "package_count": INSTALLS[item.name].packages,
                "download_bytes": INSTALLS[item.name].download_bytes,
            }
            for item in CURATED
        ]
        return Response(EnvironmentSerializer([*own, *curated, *_interpreters(workspace)], many=True).data)

    @extend_schema(request=NewVersionSerializer, responses={201: EnvironmentVersionSerializer})
    def post(self, request: Request) -> Response:
        """Make an environment, or the next version of one. The hub resolves it to a lock; then runs can use
        it."""
        return Response(create(self.principal(request), request.data), status=201)


class ExampleList(JobsView):
    @extend_schema(responses=ExampleSerializer(many=True))
    def get(self, request: Request) -> Response:  # noqa: ARG002 - DRF's signature
        """The built-in examples, each with a spec that can be submitted."""
        return Response(ExampleSerializer(snapshots.examples(), many=True).data)


def _interpreters(workspace: Workspace) -> list[dict[str, object]]:
    # The empty version stands for each node's default interpreter, which every node has.
    nodes: dict[str, list[str]] = {"": []}
    for node in visible_nodes(workspace).filter(revoked_at=None):
        nodes[""].append(node.name)
        # A node may have several interpreters of one version, but is listed once for it.
        for version in dict.fromkeys(item["version"] for item in node.interpreters):
            nodes.setdefault(version, []).append(node.name)
    return [
        {
            "name": SYSTEM,
            "version": version,
            "kind": "system",
            "requirements": [],
            "nodes": names,
            "notice": "",
        }
        for version, names in sorted(nodes.items())
    ]
