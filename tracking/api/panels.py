"""API for the panels that people arrange for an experiment."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.base import JobsView
from jobs.models import Experiment
from tracking.mlflow.lookup import DEFAULT_NAME
from tracking.panels import layout_store
from tracking.panels.metric_panel import MAX_METRICS, MAX_PANELS, MAX_WIDTH, read_panels
from trainhub_launch.fields import Fields

MAX_REVISION = 2**31 - 1


class MetricPanelSerializer(serializers.Serializer[object]):
    metrics = serializers.ListField(child=serializers.CharField(), max_length=MAX_METRICS)
    title = serializers.CharField(required=False, allow_blank=True)
    x = serializers.CharField(
        required=False, help_text="`step` (the default), `time`, `relative`, or `metrics.NAME`."
    )
    log_x = serializers.BooleanField(required=False)
    log_y = serializers.BooleanField(required=False)
    smoothing = serializers.FloatField(required=False, help_text="The weight of the moving average.")
    width = serializers.IntegerField(
        required=False, min_value=1, max_value=MAX_WIDTH, help_text="The width in columns."
    )
    is_pinned = serializers.BooleanField(required=False, help_text="Pinned panels stand before the others.")


class PanelsSerializer(serializers.Serializer[object]):
    panels = serializers.ListField(child=MetricPanelSerializer(), max_length=MAX_PANELS)
    revision = serializers.IntegerField(
        min_value=0,
        max_value=MAX_REVISION,
        help_text="The revision that the change is based on; 0 if there is none yet.",
    )


class PanelLayoutSerializer(PanelsSerializer):
    experiment = serializers.IntegerField()
    name = serializers.CharField(help_text="The name of the experiment.")
    changed_at = serializers.DateTimeField(allow_null=True)
    changed_by = serializers.CharField(allow_blank=True)


class ExperimentPanels(JobsView):
    """Everybody in the workspace sees the panels of an experiment; contributors change them."""

    def experiment(self, request: Request, experiment: int) -> Experiment:
        """Returns an experiment of the workspace that is not deleted; 0 is the default one, as for MLflow's
        clients. Raises Http404."""
        rows = Experiment.objects.filter(workspace=self.principal(request).workspace, deleted_at=None)
        row = rows.filter(pk=experiment).first() if experiment else rows.filter(name=DEFAULT_NAME).first()
        if row is None:
            raise Http404
        return row

    @extend_schema(responses=PanelLayoutSerializer, operation_id="experiment_panels")
    def get(self, request: Request, experiment: int) -> Response:
        """The arranged panels of the experiment, in their order; none if nobody has arranged any."""
        return Response(self._answer(self.experiment(request, experiment)))

    @extend_schema(
        request=PanelsSerializer, responses=PanelLayoutSerializer, operation_id="experiment_panels_replace"
    )
    def put(self, request: Request, experiment: int) -> Response:
        """Replace all panels of the experiment. 409 if they have changed since the given revision."""
        stored = self.experiment(request, experiment)
        fields = Fields(request.data)
        revision = fields.integer("revision", 0, least=0, most=MAX_REVISION)
        panels = read_panels(fields.raw("panels"))
        fields.finish()
        layout_store.save_panels(stored, panels, revision, self.principal(request).user)
        return Response(self._answer(stored))

    @extend_schema(responses={204: None}, operation_id="experiment_panels_reset")
    def delete(self, request: Request, experiment: int) -> Response:
        """Remove all panels, so that only the automatic layout is left."""
        layout_store.reset(self.experiment(request, experiment), self.principal(request).user)
        return Response(status=204)

    def _answer(self, experiment: Experiment) -> dict[str, Any]:
        return dict(PanelLayoutSerializer(layout_store.layout_json(experiment)).data)
