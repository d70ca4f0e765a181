"""API that lists the experiments of a workspace."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from django.db.models import F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.base import JobsView
from jobs.models import Experiment, Run
from jobs.reading.experiment_counts import counts_of_experiments
from trainhub_launch.errors import SpecError
from workspaces.api.cursor_pages import CursorPages
from workspaces.models import Workspace

PARAMETERS = [OpenApiParameter("name", str, description="Only the experiment with exactly this name.")]


class ExperimentSummary(NamedTuple):
    """An experiment with its runs that are not deleted."""

    experiment: Experiment
    run_count: int
    active_run_count: int
    last_run_at: datetime | None


class ExperimentSummarySerializer(serializers.Serializer[ExperimentSummary | Sequence[ExperimentSummary]]):
    id = serializers.IntegerField(source="experiment.pk")
    name = serializers.CharField(source="experiment.name")
    run_count = serializers.IntegerField(
        help_text="How many runs it has, with archived and nested ones, without deleted ones."
    )
    active_run_count = serializers.IntegerField(help_text="How many of these have not ended.")
    created_at = serializers.DateTimeField(source="experiment.created_at")
    last_run_at = serializers.DateTimeField(
        allow_null=True, help_text="When the latest of these runs was submitted; null if there is none."
    )


class ExperimentPageSerializer(serializers.Serializer[object]):
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    results = ExperimentSummarySerializer(many=True)


class ExperimentPages(CursorPages):
    page_size = 50
    max_page_size = 500
    page_size_query_param = "page_size"
    # The unique key breaks ties, so that no experiment is missed or shown twice.
    ordering = ("-active_at", "-pk")


class ExperimentList(JobsView):
    @extend_schema(operation_id="experiments_list", parameters=PARAMETERS, responses=ExperimentPageSerializer)
    def get(self, request: Request) -> Response:
        """The workspace's experiments. Those come first to which a run was submitted last; one without runs
        stands where it was created."""
        workspace, pages = self.principal(request).workspace, ExperimentPages()
        experiments = _matching_experiments(workspace, request)
        page = pages.paginate_queryset(experiments, request, view=self)
        return pages.get_paginated_response(
            ExperimentSummarySerializer(_summarize_experiments(page or []), many=True).data
        )


def _matching_experiments(workspace: Workspace, request: Request) -> QuerySet[Experiment]:
    """Returns the experiments that are not deleted, with `last_run_at` and `active_at`. Raises SpecError for
    an unknown parameter."""
    allowed = {*(item.name for item in PARAMETERS), "cursor", ExperimentPages.page_size_query_param}
    for name in request.query_params:
        if name not in allowed:
            raise SpecError(name, f"is not a known parameter; known parameters: {', '.join(sorted(allowed))}")
    experiments = Experiment.objects.filter(workspace=workspace, deleted_at=None)
    if name := request.query_params.get("name", ""):
        experiments = experiments.filter(name=name)
    # The index of an experiment's runs by time answers this with one row each; a join would read all runs.
    latest = Run.objects.filter(experiment=OuterRef("pk")).not_deleted().order_by("-created_at")
    return experiments.annotate(
        last_run_at=Subquery(latest.values("created_at")[:1]),
        active_at=Coalesce(F("last_run_at"), F("created_at")),
    )


def _summarize_experiments(experiments: Sequence[Experiment]) -> list[ExperimentSummary]:
    counts = counts_of_experiments([item.pk for item in experiments])
    return [
        ExperimentSummary(
            item, counts[item.pk].runs, counts[item.pk].active, getattr(item, "last_run_at", None)
        )
        for item in experiments
    ]
