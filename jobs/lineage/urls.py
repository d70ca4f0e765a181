from __future__ import annotations

from django.urls import path

from jobs.lineage import api

urlpatterns = [
    path("datasets/<str:name>/versions/<int:number>/lineage/", api.VersionLineage.as_view()),
    path("runs/<str:run>/datasets/", api.RunDatasets.as_view()),
]
