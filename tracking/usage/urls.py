from __future__ import annotations

from django.urls import path

from tracking.usage import pages
from tracking.usage.api import UsageView

urlpatterns = [
    path("usage/", pages.usage, name="usage"),
    path("usage/csv/", pages.usage_csv, name="usage-csv"),
    path("api/v1/usage/", UsageView.as_view()),
]
