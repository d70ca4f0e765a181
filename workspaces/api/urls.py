from __future__ import annotations

from django.urls import path

from workspaces.api import views

urlpatterns = [path("me/", views.Me.as_view())]
