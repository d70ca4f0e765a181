"""Addresses of the documentation."""

from __future__ import annotations

from django.urls import path

from trainhub.documentation import pages

urlpatterns = [
    path("docs/", pages.index, name="documentation"),
    path("docs/images/<str:name>", pages.image, name="documentation-image"),
    path("docs/<slug:slug>/", pages.document, name="document"),
]
