from __future__ import annotations

from django.urls import path

from tracking.comparison.differences import pages

urlpatterns = [path("compare/differences/<slug:kind>/", pages.difference, name="compare-difference")]
