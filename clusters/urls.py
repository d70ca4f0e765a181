from __future__ import annotations

from django.urls import path

from clusters import views

urlpatterns = [
    path("clusters/", views.clusters, name="clusters"),
    path("nodes/<slug:name>/", views.node, name="node"),
]
