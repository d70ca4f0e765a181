from __future__ import annotations

from django.urls import path

from tracking.api import compare, curves, experiments, history, panels, run_annotations, runs

urlpatterns = [
    path("runs/", runs.FilteredRunList.as_view()),
    path("runs/columns/", history.RunKeys.as_view()),
    path("runs/completion/", history.FilterCompletion.as_view()),
    path("runs/bulk/", history.RunBulk.as_view()),
    path("runs/<str:run>/star/", history.RunStar.as_view()),
    path("runs/<str:run>/pin/", history.RunPin.as_view()),
    path("runs/<str:run>/tags/<path:key>/", history.RunTagView.as_view()),
    path("runs/<str:run>/metrics/", curves.RunMetrics.as_view()),
    path("runs/<str:run>/metrics/series/", curves.RunMetricSeries.as_view()),
    path("runs/<str:run>/annotations/", run_annotations.RunAnnotations.as_view()),
    path("experiments/", experiments.ExperimentList.as_view()),
    path("experiments/<int:experiment>/panels/", panels.ExperimentPanels.as_view()),
    path("compare/metrics/", compare.CompareMetrics.as_view()),
    path("compare/series/", compare.CompareSeries.as_view()),
]
