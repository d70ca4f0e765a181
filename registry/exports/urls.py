from __future__ import annotations

from django.urls import path

from registry.exports import views

urlpatterns = [
    path("models/<str:name>/versions/<int:number>/export/", views.export, name="model-export"),
    path("models/<str:name>/versions/<int:number>/exports/", views.exports, name="model-exports"),
]
