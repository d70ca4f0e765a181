from __future__ import annotations

from django.urls import path

from clusters.api import telemetry, views

urlpatterns = [
    path("clusters/", views.ClusterList.as_view()),
    path("gpu-models/", views.GpuModels.as_view()),
    path("nodes/", views.NodeList.as_view()),
    path("nodes/invitations/", views.Invitations.as_view()),
    path("nodes/<slug:name>/", views.NodeDetail.as_view()),
    path("nodes/<slug:name>/series/", telemetry.NodeSeriesView.as_view()),
    path("gpus/<str:uuid>/series/", telemetry.GpuSeriesView.as_view()),
    path("clusters/<slug:name>/heat/", telemetry.ClusterHeat.as_view()),
    path("metrics/", telemetry.MetricTables.as_view()),
    path("nodes/<slug:name>/revoke/", views.NodeRevoke.as_view()),
]
