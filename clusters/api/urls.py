from __future__ import annotations

from django.urls import path

from clusters.api import alerts, life, telemetry, views

urlpatterns = [
    path("alerts/", alerts.AlertList.as_view()),
    path("clusters/", life.Clusters.as_view()),
    path("clusters/<slug:name>/", life.ClusterDetail.as_view()),
    path("clusters/<slug:name>/drain/", life.ClusterDrain.as_view()),
    path("clusters/<slug:name>/resume/", life.ClusterResume.as_view()),
    path("gpu-models/", views.GpuModels.as_view()),
    path("nodes/", views.NodeList.as_view()),
    path("nodes/invitations/", views.Invitations.as_view()),
    path("nodes/<slug:name>/", views.NodeDetail.as_view()),
    path("nodes/<slug:name>/series/", telemetry.NodeSeriesView.as_view()),
    path("gpus/<str:uuid>/series/", telemetry.GpuSeriesView.as_view()),
    path("clusters/<slug:name>/heat/", telemetry.ClusterHeat.as_view()),
    path("metrics/", telemetry.MetricTables.as_view()),
    path("nodes/<slug:name>/revoke/", views.NodeRevoke.as_view()),
    path("nodes/<slug:name>/drain/", life.NodeDrain.as_view()),
    path("nodes/<slug:name>/resume/", life.NodeResume.as_view()),
    path("nodes/<slug:name>/monitor-only/", life.NodeMonitorOnly.as_view()),
    path("nodes/<slug:name>/low-priority/", life.NodeLowPriority.as_view()),
    path("nodes/<slug:name>/remove/", life.NodeRemove.as_view()),
]
