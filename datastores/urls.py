from __future__ import annotations

from django.urls import path

from datastores import views

urlpatterns = [
    path("data/", views.datastores, name="data"),
    path("data/new/", views.datastore_create, name="datastore-create"),
    path("data/datastores/<str:name>/delete/", views.datastore_delete, name="datastore-delete"),
]
