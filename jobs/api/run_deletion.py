"""Deleted and archived runs: bring them back, or have them go for good. Deleting itself is DELETE of a
run."""

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
    purged_at = serializers.SerializerMethodField(help_text="When it goes for good; null: it is on its way.")

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
        """Runs that are deleted and not gone for good yet, newest first."""
        pages = RunPages()
        runs = self.runs(request).select_related("experiment", "created_by").prefetch_related("tags")
        page = pages.paginate_queryset(causes.annotate_lines(runs), request, view=self)
        return pages.get_paginated_response(DeletedRunSerializer(page or [], many=True).data)


class RunRestore(_DeletedRunsView):
    @extend_schema(request=None, responses=RunDetailSerializer)
    def post(self, request: Request, run: str) -> Response:
        """Bring a deleted run back, with what is part of it."""
        instance = self.run(request, run)
        deletion.restore(instance, self.principal(request).user)
        instance.refresh_from_db()
        return Response(RunDetailSerializer(instance).data)


class RunPurge(_DeletedRunsView):
    permission_classes = [AtLeast(Role.OWNER)]

    @extend_schema(request=None, responses={202: None})
    def post(self, request: Request, run: str) -> Response:
        """Have a deleted run go for good now, with its logs, metrics and files. Registered versions stay."""
        run_purge.purge_now(self.run(request, run), self.principal(request).user)
        return Response(status=202)


class RunArchive(JobsView):
    @extend_schema(request=None, responses=RunDetailSerializer)
    def post(self, request: Request, run: str) -> Response:
        """Take an ended run, and what is part of it, out of the lists."""
        instance = self.run(request, run)
        deletion.archive(instance, self.principal(request).user)
        return Response(RunDetailSerializer(self.run(request, run)).data)


class RunUnarchive(JobsView):
    @extend_schema(request=None, responses=RunDetailSerializer)
    def post(self, request: Request, run: str) -> Response:
        """Put an archived run into the lists again."""
        instance = self.run(request, run)
        deletion.unarchive(instance, self.principal(request).user)
        return Response(RunDetailSerializer(self.run(request, run)).data)
