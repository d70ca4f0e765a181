"""Address of the page System."""

from __future__ import annotations

from django.urls import path

from trainhub.system_page.views import system

urlpatterns = [path("system/", system, name="system")]
