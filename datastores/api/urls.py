from __future__ import annotations

from django.urls import path

from datastores.api import views

urlpatterns = [
    path("datastores/", views.DatastoreList.as_view()),
    path("datastores/<str:name>/", views.DatastoreDetail.as_view()),
]
