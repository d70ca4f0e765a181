"""The API for deleted and archived runs. Deleting a run itself is DELETE of the run."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs import causes
from jobs.api.base import JobsView
from jobs.api.selection import RunPages
from jobs.api.serializers import RunDetailSerializer, RunSerializer
from jobs.models import Run
from jobs.querysets import RunQuerySet
from jobs.retention import deletion, run_purge
from workspaces.api.permissions import AtLeast
from workspaces.states import Role


class DeletedRunSerializer(RunSerializer):
    deleted_at = serializers.DateTimeField()
    purged_at = serializers.SerializerMethodField(
        help_text="When the run will be purged permanently; null if the purge has already begun."
    )

    def get_purged_at(self, run: Run) -> str | None:
        if run.deleted_at is None or run.deleted_at == deletion.PURGE_STARTED:
            return None
        return run_purge.due_at(run.deleted_at).isoformat()


class DeletedRunPageSerializer(serializers.Serializer[Any]):
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    results = DeletedRunSerializer(many=True)


class _DeletedRunsView(JobsView):
    def runs(self, request: Request) -> RunQuerySet:
        return Run.objects.with_deleted_for_workspace(self.principal(request).workspace).deleted()


class DeletedRunList(_DeletedRunsView):
    @extend_schema(operation_id="runs_deleted", responses=DeletedRunPageSerializer)
    def get(self, request: Request) -> Response:
        """Deleted runs that are not purged yet, newest first."""
        pages = RunPages()
        runs = self.runs(request).select_related("experiment", "created_by").prefetch_related("tags")
        page = pages.paginate_queryset(causes.annotate_lines(runs), request, view=self)
        return pages.get_paginated_response(DeletedRunSerializer(page or [], many=True).data)


class RunRestore(_DeletedRunsView):
    @extend_schema(request=None, responses=RunDetailSerializer)
    def post(self, request: Request, run: str) -> Response:
        """Restore a deleted run, with its parents and the nested runs that were deleted together with it."""
        instance = self.run(request, run)
        deletion.restore(instance, self.principal(request).user)
        instance.refresh_from_db()
        return Response(RunDetailSerializer(instance).data)


class RunPurge(_DeletedRunsView):
    permission_classes = [AtLeast(Role.OWNER)]

    @extend_schema(request=None, responses={202: None})
    def post(self, request: Request, run: str) -> Response:
        """Purge a deleted run permanently now, with its logs, metrics and files. Registered model versions
        are kept."""
        run_purge.purge_now(self.run(request, run), self.principal(request).user)
        return Response(status=202)


class RunArchive(JobsView):
    @extend_schema(request=None, responses=RunDetailSerializer)
    def post(self, request: Request, run: str) -> Response:
        """Archive an ended run and its nested runs, so that lists omit them."""
        instance = self.run(request, run)
        deletion.archive(instance, self.principal(request).user)
        return Response(RunDetailSerializer(self.run(request, run)).data)


class RunUnarchive(JobsView):
    @extend_schema(request=None, responses=RunDetailSerializer)
    def post(self, request: Request, run: str) -> Response:
        """Unarchive a run and its nested runs, so that lists show them again."""
        instance = self.run(request, run)
        deletion.unarchive(instance, self.principal(request).user)
        return Response(RunDetailSerializer(self.run(request, run)).data)
