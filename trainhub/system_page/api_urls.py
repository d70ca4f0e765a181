"""Address of the API about the hub itself."""

from __future__ import annotations

from django.urls import path

from trainhub.system_page.views import SystemView

urlpatterns = [path("system/", SystemView.as_view(), name="api-system")]
