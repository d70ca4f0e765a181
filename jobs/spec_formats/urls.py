"""The routes of the API; pages are in `jobs.urls`."""

from __future__ import annotations

from django.urls import path

from jobs.spec_formats import api

urlpatterns = [
    path("specs/export/", api.SpecExportView.as_view()),
    path("specs/import/", api.SpecImportView.as_view()),
]
