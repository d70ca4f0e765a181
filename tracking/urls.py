from __future__ import annotations

from django.urls import path

from tracking.views import compare

urlpatterns = [
    path("compare/", compare.page, name="compare"),
    path("compare/candidates/", compare.candidates, name="compare-candidates"),
]
