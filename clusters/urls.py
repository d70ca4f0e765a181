from __future__ import annotations

from django.urls import path

from clusters import views

urlpatterns = [
    path("clusters/", views.clusters, name="clusters"),
    path("clusters/add/", views.add_machine, name="add-machine"),
    path("clusters/invitations/<int:pk>/", views.invitation, name="invitation"),
    path("clusters/<slug:name>/", views.cluster, name="cluster"),
    path("nodes/<slug:name>/", views.node, name="node"),
    path("nodes/<slug:name>/revoke/", views.node_revoke, name="node-revoke"),
]
