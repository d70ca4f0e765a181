from __future__ import annotations

from django.urls import path

from jobs.views import catalog, dashboard, listing, search

urlpatterns = [
    path("", dashboard.dashboard, name="dashboard"),
    path("search/", search.search, name="search"),
    path("runs/", listing.runs, name="runs"),
    path("experiments/", catalog.experiments, name="experiments"),
]
