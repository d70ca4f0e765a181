from __future__ import annotations

from django.urls import path

from tracking.api import compare, curves

urlpatterns = [
    path("runs/<str:run>/metrics/", curves.RunMetrics.as_view()),
    path("runs/<str:run>/metrics/series/", curves.RunMetricSeries.as_view()),
    path("compare/metrics/", compare.CompareMetrics.as_view()),
    path("compare/series/", compare.CompareSeries.as_view()),
]
