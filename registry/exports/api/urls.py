from __future__ import annotations

from django.urls import path

from registry.exports.api import views

urlpatterns = [path("models/<str:name>/versions/<int:number>/exports/", views.ExportList.as_view())]
